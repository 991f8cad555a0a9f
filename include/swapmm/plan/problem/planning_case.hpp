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

/// What every planner asks of a trace and a machine, worked out once. Refers to both: they must outlive it.
struct PlanningCase {
  const Trace& trace;
  const Machine& machine;
  Liveness liveness;
  std::uint32_t operations = 0;
  std::uint64_t budget = 0;               ///< bytes, rounded down to the alignment
  std::vector<std::uint64_t> sizes;       ///< per tensor, in bytes, rounded up to the alignment
  std::vector<HostRead> host_reads;       ///< by tensor, then operation
  std::vector<std::uint32_t> first_read;  ///< per tensor its first host read there, and one more
};

/// A Problem where one bundle is larger than the budget, or one tensor larger than an allocation can be.
[[nodiscard]] Result<PlanningCase> make_planning_case(const Trace& trace, const Machine& machine);

[[nodiscard]] std::chrono::nanoseconds copy_time(const Link& link, Bytes bytes);

[[nodiscard]] inline std::span<const HostRead> host_reads_of(const PlanningCase& planning, TensorId tensor) {
  const std::size_t t = index(tensor);
  return std::span(planning.host_reads)
      .subspan(planning.first_read[t], planning.first_read[t + 1] - planning.first_read[t]);
}

/// The way on the circle from one use of a tensor to the next. `to` is above `from`: at or above the number of
/// operations where it lies in the next iteration.
struct UseGap {
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  bool value_needed = false;  ///< at `to`, an operation needs the value that `from` left
};

/// The way from use `position` (of liveness.uses) to the next. Nothing where the tensor's value never comes from
/// there: after the last use of an input or a transient.
[[nodiscard]] std::optional<UseGap> gap_after_use(const PlanningCase& planning, TensorId tensor, std::size_t position);

}  // namespace swapmm::planning
