// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>

#include <swapmm/base/result.hpp>
#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/planner.hpp>
#include <swapmm/plan/v2/plan.hpp>
#include <swapmm/plan/v2/relaxation/lower_bound.hpp>

namespace swapmm::v2::planning {

enum class SearchFor : std::uint8_t {
  plan,   ///< to be followed
  worth,  ///< that tells what a choice is worth
};
/// Plans for traces in which values are only copied, on a machine that it knows.
using CopyPlanner = std::function<Result<Plan>(const Trace& trace, const PlanningOptions& options,
                                               const LazyBound& bound, SearchFor searched)>;

/// Plans for a trace in which values can come back in other ways than by copies, on a machine with many memories. Ways
/// are chosen as if all memories but the device were one host (plan_with_ways()), which has several speeds: that of all
/// links together, that of the slowest one, and one between. The program with each choice is planned for the machine by
/// `copies`, in a short search; the best choice gets a longer one. Copies alone are a choice, too. Fills in all but
/// `planner` and the bound.
///
/// Where engines name memories, ways are chosen for each memory alone (WayPart). A Problem if no choice can be planned
/// for.
[[nodiscard]] Result<Plan> search_ways(const Trace& trace, const Machine& machine, const PlanningOptions& options,
                                       const CopyPlanner& copies, const LazyBound& bound);

}  // namespace swapmm::v2::planning
