// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <span>
#include <utility>

#include <swapmm/base/result.hpp>
#include <swapmm/plan/plan.hpp>
#include <swapmm/plan/planner.hpp>
#include <swapmm/plan/planner_options.hpp>
#include <swapmm/plan/problem/planning_case.hpp>
#include <swapmm/plan/schedule/best_plan.hpp>
#include <swapmm/plan/search/best_search.hpp>

namespace swapmm::planning {

/// A plan, and a lower bound for all plans.
struct ProvenPlan {
  Plan plan;  ///< without digest and prediction
  /// No valid plan for this trace and machine is faster.
  std::chrono::nanoseconds lower_bound{0};
};

/// A run of the planner `best` that can be continued round by round, to share the time with other runs. Keeps
/// references to all arguments of the constructor.
class BestRun {
 public:
  /// `first`: a plan to begin with. `others`: see build_best_plan().
  BestRun(const PlanningCase& planning, const BestOptions& options, const PlanningOptions& limits,
          std::span<const NamedPlanner> others, Plan first)
      : planning_(planning),
        options_(options),
        limits_(limits),
        others_(others),
        best_(planning, std::move(first)),
        search_(planning, options, limits, best_) {}

  /// See BestSearch.
  void give_up_above(std::chrono::nanoseconds most) { search_.give_up_above(most); }
  /// Runs that many rounds more; without a number, until the bound is reached or there is no time left.
  void run(std::optional<int> rounds) { search_.run_rounds(others_, rounds); }
  /// What comes at the end, with the plan. To be called once.
  [[nodiscard]] ProvenPlan finish();

  /// The time of the best plan so far.
  [[nodiscard]] std::chrono::nanoseconds reached() const { return best_.simulation().iteration; }
  /// That plan.
  [[nodiscard]] const Plan& plan() const { return best_.plan(); }
  /// The lower bound that the run has.
  [[nodiscard]] std::chrono::nanoseconds lower_bound() const { return search_.lower_bound(); }
  /// Whether more rounds would change nothing.
  [[nodiscard]] bool is_done() const { return search_.is_near_bound(); }
  /// The number of rounds that it takes without a clock.
  [[nodiscard]] int rounds_without_clock() const { return search_.rounds_without_clock(); }

 private:
  const PlanningCase& planning_;
  const BestOptions& options_;
  const PlanningOptions& limits_;
  std::span<const NamedPlanner> others_;
  BestPlan best_;
  BestSearch search_;
};

/// The plan that a BestRun begins with. A Problem if a single bundle does not pack.
[[nodiscard]] Result<Plan> first_plan_of_best(const PlanningCase& planning);

/// Makes the plan of the planner `best`. The relaxed problem that gives the lower bound (plan/relaxation) also decides
/// which tensors are away over which absences. These decisions are rounded, improved by annealing with SwapTiming as
/// the measure (plan/search/timing/away_search), packed and simulated. Decisions that do not pack are made again for
/// parts of the budget near the largest that packs. The room that this leaves free, in pieces, is then filled
/// (plan/search/places/place_search). All this is repeated while there is time.
///
/// Among plans as fast as the bound (to a hundred-thousandth), it looks for one that slower links slow down less, even
/// if it copies more bytes; not in large traces.
///
/// If the trace is small, or if it is of medium size and the search gains nothing more, the planners `others` are tried
/// as well. The best plan counts. Returns a Problem if a single bundle does not pack.
[[nodiscard]] Result<ProvenPlan> build_best_plan(const PlanningCase& planning, const BestOptions& options,
                                                 const PlanningOptions& limits, std::span<const NamedPlanner> others);

}  // namespace swapmm::planning
