// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <vector>

#include <swapmm/plan/bound.hpp>
#include <swapmm/plan/planner_options.hpp>
#include <swapmm/plan/problem/overlap_ledger.hpp>
#include <swapmm/plan/problem/planning_case.hpp>

namespace swapmm::planning {

/// Effort for a tight bound. Takes several seconds for 1,500 operations.
inline constexpr BoundEffort tight_bound_effort{120, 600'000, 24};

/// The effort for the bound of a plan: a rough one for very long traces, so that simple planners stay fast.
[[nodiscard]] const BoundEffort& bound_effort_for(const PlanningCase& planning, const BoundOptions& options);

/// The best that swaps could do if tensors were divisible and no room were lost between places.
struct RelaxedSwaps {
  std::chrono::nanoseconds lower_bound{0};  ///< proven: no valid plan's iteration is shorter
  std::vector<double> away;  ///< per absence of the ledger: the part of it that is off the device, 0 to 1
  std::vector<double> time;  ///< per operation: nanoseconds until the next one starts
  /// Per absence: the value of being away under the prices of room, minus the cost of its copies under those of the
  /// links, in nanoseconds of the iteration. Below 0: it should stay.
  std::vector<double> gain;
};

/// Solves the linear program of docs/planning.md over groups of operations, for its prices. These give a bound in the
/// Lagrangian over all operations, which is valid for any prices. Then it repeats this with smaller groups where they
/// may improve the bound. Up to 24 operations are not grouped. `go_on` is called before each round but the first; false
/// ends the search.
[[nodiscard]] RelaxedSwaps relax_swaps(const PlanningCase& planning, const OverlapLedger& ledger,
                                       const BoundEffort& effort = {}, const std::function<bool()>& go_on = {});

}  // namespace swapmm::planning
