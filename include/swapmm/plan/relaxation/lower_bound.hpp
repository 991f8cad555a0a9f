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

/// Several seconds for 1,500 operations.
inline constexpr BoundEffort tight_bound_effort{120, 600'000, 24};

/// What every plan's bound may take: for very long traces a rough one, so that plain planners stay fast.
[[nodiscard]] const BoundEffort& bound_effort_for(const PlanningCase& planning, const BoundOptions& options);

/// The best that swaps could do if tensors were divisible and no place were lost between them.
struct RelaxedSwaps {
  std::chrono::nanoseconds lower_bound{0};  ///< proven: no valid plan's iteration is shorter
  std::vector<double> away;                 ///< per absence of the ledger the part of it that is off the device, 0 to 1
  std::vector<double> time;                 ///< per operation, nanoseconds until the next one starts
  /// Per absence what its being away is worth under the prices of room, less what its copies cost under those of the
  /// links, in nanoseconds of the iteration. Below 0: it should stay.
  std::vector<double> gain;
};

/// The linear program of docs/planning.md over groups of operations, solved for its prices; these, in the Lagrangian
/// over all operations, give a bound that is valid whatever they are. Then again with smaller groups where that tells
/// more. Up to 24 operations are not grouped. `go_on` is asked before each round but the first: false ends it.
[[nodiscard]] RelaxedSwaps relax_swaps(const PlanningCase& planning, const OverlapLedger& ledger,
                                       const BoundEffort& effort = {}, const std::function<bool()>& go_on = {});

}  // namespace swapmm::planning
