// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <swapmm/ir/liveness.hpp>
#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/planner.hpp>
#include <swapmm/plan/problem/planning_case.hpp>
#include <swapmm/plan/ways.hpp>

namespace swapmm::planning {

/// Who gave the tensors of a trace their values, and until when. Answers what may run again or be encoded, and when.
class ValueHistory {
 public:
  explicit ValueHistory(const Trace& trace);

  static constexpr std::uint32_t nobody = 0xffffffffU;

  /// The last operation before `position` that wrote or updated the tensor in this iteration, or nobody.
  [[nodiscard]] std::uint32_t giver(TensorId tensor, std::uint32_t position) const;
  /// Whether an operation of [first, end) writes or updates the tensor.
  [[nodiscard]] bool changes(TensorId tensor, std::uint32_t first, std::uint32_t end) const;
  /// The operations that have to run again right before operation `before`, so that what `operation` gives is as it
  /// was: itself, those that updated the same tensors behind it, and, if it updates a tensor itself, those that gave
  /// the tensor its value. Ascending. Empty if one of them may not: each is replayable, and changes transients alone,
  /// which the host does not read; no operation in between gives what it reads another value, or overwrites what it
  /// changes. Each of them has the same group.
  [[nodiscard]] std::vector<std::uint32_t> group(std::uint32_t operation, std::uint32_t before) const;
  /// Whether there is such a group.
  [[nodiscard]] bool may_run_again(std::uint32_t operation, std::uint32_t before) const {
    return !group(operation, before).empty();
  }
  /// Whether the tensor's value behind operation `after` may be decoded before operation `before`.
  [[nodiscard]] bool may_be_coded(TensorId tensor, std::uint32_t after, std::uint32_t before) const;

 private:
  [[nodiscard]] bool updates(std::uint32_t operation, TensorId tensor) const;

  const Trace& trace_;
  std::vector<std::vector<std::uint32_t>> changed_by_;  // per tensor, ascending
  std::vector<bool> may_be_rewritten_;                  // per tensor
};

/// The uses of the tensor from that operation on, ascending.
[[nodiscard]] std::span<const Use> uses_from(const Liveness& liveness, TensorId tensor, std::uint32_t operation);

/// Per operation, and behind the last one: how many operations before it have more live bytes than there is room.
[[nodiscard]] std::vector<std::uint32_t> count_full(const PlanningCase& planning);

/// What a copy of the tensor's value is predicted to move. Without padding only if it is encoded on its way.
[[nodiscard]] inline std::uint64_t moved_bytes(const PlanningCase& planning, TensorId tensor) {
  const std::optional<Bytes>& copied = planning.trace.tensors[index(tensor)].copied;
  return copied ? copied->value : planning.sizes[index(tensor)];
}

/// The trace without what only other ways than copies need: replayable operations, and forms. Ranges stay.
[[nodiscard]] Trace without_ways(Trace trace);
/// Without those that may not be chosen.
[[nodiscard]] Trace only_ways(Trace trace, const Ways& ways);
/// The kinds of ways that the trace has; pieces, if operations work with any.
[[nodiscard]] Ways ways_in(const Trace& trace);
/// All ways of using fewer kinds of ways, at least one, of those that the trace has and that are allowed.
[[nodiscard]] std::vector<Ways> fewer_ways(const Trace& trace, const Ways& allowed);
/// Whether there is anything that without_ways() leaves out.
[[nodiscard]] bool has_ways(const Trace& trace);
/// The same for only_ways() with these.
[[nodiscard]] bool has_ways(const Trace& trace, const Ways& ways);
/// Whether without_ways() is a trace of version 1.
[[nodiscard]] bool is_version_1_but_for_ways(const Trace& trace);

}  // namespace swapmm::planning
