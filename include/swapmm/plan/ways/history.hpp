// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <swapmm/base/result.hpp>
#include <swapmm/ir/liveness.hpp>
#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/recompute.hpp>

namespace swapmm::planning {

/// Who gave the tensors of a trace their values, and until when. Answers what may run again, and when.
class ValueHistory {
 public:
  explicit ValueHistory(const Trace& trace);

  static constexpr std::uint32_t nobody = 0xffffffffU;

  /// The last operation before `position` that wrote or updated the tensor in this iteration, or nobody.
  [[nodiscard]] std::uint32_t giver(TensorId tensor, std::uint32_t position) const;
  /// Whether an operation of [first, end) writes or updates the tensor.
  [[nodiscard]] bool changes(TensorId tensor, std::uint32_t first, std::uint32_t end) const;
  /// Whether `operation` may run again right before operation `before`: it is replayable, updates nothing, writes
  /// transients alone, which the host does not read, and no operation in between gives what it reads or writes another
  /// value.
  [[nodiscard]] bool may_run_again(std::uint32_t operation, std::uint32_t before) const;

 private:
  const Trace& trace_;
  std::vector<std::vector<std::uint32_t>> changed_by_;  // per tensor, ascending
  std::vector<bool> may_be_rewritten_;                  // per tensor
};

/// swapmm::with_replays() for a trace whose history is known.
[[nodiscard]] Result<ReplayedTrace> with_replays(const Trace& trace, const ValueHistory& history,
                                                 std::span<const Replay> replays);

/// The uses of the tensor from that operation on, ascending.
[[nodiscard]] std::span<const Use> uses_from(const Liveness& liveness, TensorId tensor, std::uint32_t operation);

/// The trace without what only plans with recomputation need: no operation is replayable.
[[nodiscard]] Trace without_replayable(Trace trace);

}  // namespace swapmm::planning
