// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <vector>

#include <swapmm/plan/bound.hpp>
#include <swapmm/plan/problem/overlap_ledger.hpp>
#include <swapmm/plan/problem/planning_case.hpp>

namespace swapmm::planning {

/// Effort for a tight bound: several seconds for 1,500 operations.
inline constexpr BoundEffort tight_bound_effort{120, 600'000, 24};

/// The effort for the bound of every plan. For very long traces the bound is rough, so that simple planners stay fast.
[[nodiscard]] BoundEffort bound_effort_for(const PlanningCase& planning);

/// The best swaps if tensors were divisible and places had no gaps.
struct RelaxedSwaps {
  std::chrono::nanoseconds lower_bound{0};  ///< proven: no valid plan's iteration is shorter
  std::vector<double> away;                 ///< for each absence of the ledger the part that is off the device: 0 to 1
  std::vector<double> time;                 ///< per operation, nanoseconds until the next one starts
  /// For each absence the value of being away under the prices of room, less the cost of its copies under the prices of
  /// the links, in nanoseconds of the iteration. Below 0 the tensor should stay.
  std::vector<double> gain;
};

/// Solves the linear program of docs/planning.md over groups of operations for its prices. In the Lagrangian over all
/// operations, any prices give a valid bound. Repeats this with smaller groups where that improves the bound. Up to 24
/// operations are not grouped. `go_on` is called before each round except the first; false ends the search.
[[nodiscard]] RelaxedSwaps relax_swaps(const PlanningCase& planning, const OverlapLedger& ledger,
                                       const BoundEffort& effort = {}, const std::function<bool()>& go_on = {});

}  // namespace swapmm::planning
