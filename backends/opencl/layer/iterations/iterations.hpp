// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "cycle_finder.hpp"

namespace swapmm::opencl::layer {

/// Tells a runtime (`Core`) which of the commands that run on it are iterations. With the lock.
class Iterations {
 public:
  /// Called before a command is given to the runtime. May throw what the runtime throws; then the command is outside
  /// iterations.
  template <class Core>
  void before(Core& core, std::uint64_t token, bool host_reads) {
    if (!finder_) finder_.emplace();
    const CycleFinder::Step step = finder_->next(token, host_reads);
    if (step.leaves || step.begins) end(core);
    ends_ = step.ends;
    if (!step.begins) return;
    core.begin_iteration("iteration");
    open_ = true;
  }
  /// Called when the runtime has the command.
  template <class Core>
  void after(Core& core) {
    if (ends_) end(core);
  }
  /// Ends the current iteration, for something that the runtime does between iterations only.
  template <class Core>
  void leave(Core& core) {
    if (finder_) finder_->leave();
    end(core);
  }

  /// See CycleFinder.
  [[nodiscard]] std::optional<std::uint64_t> expected(std::size_t ahead) const {
    return finder_ ? finder_->expected(ahead) : std::nullopt;
  }
  [[nodiscard]] bool began() const { return finder_.has_value(); }
  [[nodiscard]] std::uint64_t cycles() const { return finder_ ? finder_->found() : 0; }

 private:
  template <class Core>
  void end(Core& core) {
    ends_ = false;
    if (!open_) return;
    open_ = false;
    core.end_iteration();
  }

  std::optional<CycleFinder> finder_;  // made when it is needed
  bool open_ = false;                  // the runtime is in an iteration
  bool ends_ = false;                  // with the current command
};

}  // namespace swapmm::opencl::layer
