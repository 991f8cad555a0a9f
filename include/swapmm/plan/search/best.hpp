// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <span>
#include <string_view>

#include <swapmm/base/result.hpp>
#include <swapmm/plan/plan.hpp>
#include <swapmm/plan/planner.hpp>
#include <swapmm/plan/problem/planning_case.hpp>

namespace swapmm::planning {

/// A plan, and a time that no plan beats.
struct ProvenPlan {
  Plan plan;  ///< without digest and prediction
  std::chrono::nanoseconds lower_bound{0};
};

/// The planner `best`. The relaxed problem that gives the lower bound (plan/relaxation/lower_bound.hpp) also says which
/// tensors should be away over which absences. Its solution is rounded and improved by annealing with SwapTiming as
/// measure (plan/search/timing/away_search.hpp), packed and simulated. If it does not pack, it is decided again for a
/// part of the budget, as large as one that packs. The room that this leaves is filled again
/// (plan/search/places/place_search.hpp). This repeats while there is time.
///
/// Among plans as fast as the bound (to a hundred-thousandth), it searches for one that slower links slow down less,
/// even if that plan copies more bytes. It does not do so for large traces.
///
/// `others` are run, too: for small traces at once, and for large ones if there is time. The best plan counts. A
/// Problem if a bundle does not pack even alone.
[[nodiscard]] Result<ProvenPlan> build_best_plan(const PlanningCase& planning, const PlanningOptions& options,
                                                 std::span<const NamedPlanner> others);

}  // namespace swapmm::planning
