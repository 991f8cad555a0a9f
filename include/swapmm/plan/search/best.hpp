// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <span>
#include <string_view>

#include <swapmm/base/result.hpp>
#include <swapmm/plan/plan.hpp>
#include <swapmm/plan/planner.hpp>
#include <swapmm/plan/planner_options.hpp>
#include <swapmm/plan/problem/planning_case.hpp>

namespace swapmm::planning {

/// A plan, and a lower bound for all plans.
struct ProvenPlan {
  Plan plan;  ///< without digest and prediction
  /// No valid plan for this trace and machine is faster.
  std::chrono::nanoseconds lower_bound{0};
};

/// Makes the plan of the planner `best`. The relaxed problem that gives the lower bound (plan/relaxation) also decides
/// which tensors are away over which absences. These decisions are rounded, improved by annealing with SwapTiming as
/// the measure (plan/search/timing/away_search), packed and simulated. Decisions that do not pack are made again for
/// the largest part of the budget that a few packings find. The room that this leaves free, in pieces, is then filled
/// (plan/search/places/place_search). All this is repeated while there is time.
///
/// Among plans as fast as the bound (to a hundred-thousandth), it looks for one that slower links slow down less, even
/// if it copies more bytes; not in large traces.
///
/// If the trace is small, or if it is of medium size and there is time, the planners `others` are tried as well. The
/// best plan counts. Returns a Problem if a single bundle does not pack.
[[nodiscard]] Result<ProvenPlan> build_best_plan(const PlanningCase& planning, const BestOptions& options,
                                                 const PlanningOptions& limits, std::span<const NamedPlanner> others);

}  // namespace swapmm::planning
