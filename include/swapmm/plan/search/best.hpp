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

/// A plan, and what no plan beats.
struct ProvenPlan {
  Plan plan;  ///< without digest and prediction
  std::chrono::nanoseconds lower_bound{0};
};

/// The planner `best`: who is away over which absence comes from the relaxed problem that also gives the lower bound
/// (plan/lower_bound), is rounded and improved by annealing with SwapTiming as its measure (plan/away_search), packed
/// and simulated. What does not pack is decided again for a part of the budget, as large a one as packs; the room that
/// this leaves over, in pieces, is filled again (plan/place_search). Again from the start while time is left.
///
/// Among plans as fast as the bound (to a hundred-thousandth), it looks for one that slower links slow down less, even
/// if it copies more bytes; not in large traces.
///
/// Small traces are also given to `others`, and large ones where there is time; the best plan counts. A Problem where
/// one bundle alone does not pack.
[[nodiscard]] Result<ProvenPlan> build_best_plan(const PlanningCase& planning, const BestOptions& options,
                                                 const PlanningOptions& limits, std::span<const NamedPlanner> others);

}  // namespace swapmm::planning
