// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "cycle_finder.hpp"
#include "patience.hpp"

namespace swapmm::opencl::layer {

/// Tells a runtime (`Core`) which of the commands that run on it are iterations. With the lock.
class Iterations {
 public:
  explicit Iterations(bool waits_for_values) : patience_(waits_for_values) {}

  /// Called before a command is given to the runtime. May throw what the runtime throws; then the command is outside
  /// iterations.
  template <class Core>
  void before(Core& core, std::uint64_t token, HostPart host) {
    if (!finder_) finder_.emplace();
    const CycleFinder::Step step = finder_->next(token, host, core.swapped().value);
    if (step.leaves || step.begins) end(core, false);
    ends_ = step.ends;
    ++length_;
    if (!step.begins) {
      if (!open_) patience_.interrupted();
      return;
    }
    core.begin_iteration("iteration");
    open_ = true;
    length_ = 1;
  }
  /// Called when the runtime has the command.
  template <class Core>
  void after(Core& core) {
    if (ends_) end(core, true);
  }
  /// Ends the current iteration, for something that the runtime does between iterations only.
  template <class Core>
  void leave(Core& core) {
    if (finder_) finder_->leave();
    end(core, false);
  }

  /// See CycleFinder.
  [[nodiscard]] std::optional<std::uint64_t> expected(std::size_t ahead) const {
    return finder_ ? finder_->expected(ahead) : std::nullopt;
  }
  /// How long commands may be held back, by what iterations take.
  [[nodiscard]] const Patience& patience() const { return patience_; }
  [[nodiscard]] bool began() const { return finder_.has_value(); }
  [[nodiscard]] std::uint64_t cycles() const { return finder_ ? finder_->found() : 0; }

  /// True within an iteration of the runtime.
  [[nodiscard]] bool inside() const { return open_; }
  /// How many have ended.
  [[nodiscard]] std::uint64_t ended() const { return ended_; }
  /// The last one that was not left early, as a number from 1 to ended(); 0 if there was none.
  [[nodiscard]] std::uint64_t last_whole() const { return last_whole_; }
  /// Commands of the last one that ended.
  [[nodiscard]] std::uint64_t last_length() const { return last_length_; }

 private:
  template <class Core>
  void end(Core& core, bool whole) {
    ends_ = false;
    if (!open_) return;
    open_ = false;
    ++ended_;
    if (whole) last_whole_ = ended_;
    if (whole && core.follows_plan()) finder_->followed();
    last_length_ = length_;
    if (whole) {
      patience_.iteration_ended(Patience::Clock::now());
    } else {
      patience_.interrupted();
    }
    core.end_iteration();
  }

  Patience patience_;
  std::optional<CycleFinder> finder_;  // made when it is needed
  bool open_ = false;                  // the runtime is in an iteration
  bool ends_ = false;                  // with the current command
  std::uint64_t ended_ = 0;
  std::uint64_t last_whole_ = 0;
  std::uint64_t length_ = 0;  // commands of the current one
  std::uint64_t last_length_ = 0;
};

}  // namespace swapmm::opencl::layer
