// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <swapmm/base/result.hpp>
#include <swapmm/ir/liveness.hpp>
#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/machine.hpp>

namespace swapmm::planning {

/// Facts about a trace and a machine that every planner needs, computed once. Refers to both, which must outlive it.
struct PlanningCase {
  const Trace& trace;
  const Machine& machine;
  Liveness liveness;
  std::uint32_t operations = 0;
  std::uint64_t budget = 0;               ///< bytes, rounded down to the alignment
  std::vector<std::uint64_t> sizes;       ///< per tensor, in bytes, rounded up to the alignment
  std::vector<HostRead> host_reads;       ///< by tensor, then operation
  std::vector<std::uint32_t> first_read;  ///< per tensor its first position in host_reads, and the end
};

/// Makes the planning case. Returns a Problem if a bundle is larger than the budget, or a tensor larger than the
/// largest allocation.
[[nodiscard]] Result<PlanningCase> make_planning_case(const Trace& trace, const Machine& machine);
Result<PlanningCase> make_planning_case(const Trace&& trace, const Machine& machine) = delete;  // would be gone
Result<PlanningCase> make_planning_case(const Trace& trace, const Machine&& machine) = delete;

[[nodiscard]] std::chrono::nanoseconds copy_time(const Link& link, Bytes bytes);

/// The sum of the operations' durations.
[[nodiscard]] std::chrono::nanoseconds compute_time(const Trace& trace);

[[nodiscard]] inline std::span<const HostRead> host_reads_of(const PlanningCase& planning, TensorId tensor) {
  const std::size_t t = index(tensor);
  return std::span(planning.host_reads)
      .subspan(planning.first_read[t], planning.first_read[t + 1] - planning.first_read[t]);
}

/// The stretch on the circle from one use of a tensor to the next. `to` is above `from`; if it is in the next
/// iteration, it is at or above the number of operations.
struct UseGap {
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  bool value_needed = false;  ///< the operation at `to` needs the value that `from` left, or the value lingers
  /// The value lingers: it may be lost from this gap on, and from `to` on it need not be anywhere, or is overwritten.
  /// 0: it does not.
  std::uint32_t lost_from = 0;

  [[nodiscard]] bool lingers() const { return lost_from != 0; }
};

/// The stretch from use `position` (in liveness.uses) to the next, or to the gap from which a lingering value may be
/// lost. No value after the last use of an input or a transient that does not linger, because it is dead there.
[[nodiscard]] std::optional<UseGap> gap_after_use(const PlanningCase& planning, TensorId tensor, std::size_t position);

}  // namespace swapmm::planning
