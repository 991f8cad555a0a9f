// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <tuple>
#include <utility>

#include <swapmm/plan/problem/planning_case.hpp>
#include <swapmm/plan/simulate.hpp>

namespace swapmm::planning {

/// Keeps the best of the plans offered so far, by (iteration time, bytes moved).
class BestPlan {
 public:
  /// Says what a plan does. The default is simulate().
  using Judge = std::function<Simulation(const Plan&)>;

  BestPlan(const PlanningCase& planning, Plan first, Judge judge = {})
      : planning_(planning), judge_(std::move(judge)), plan_(std::move(first)), simulation_(outcome_of(plan_)) {}

  [[nodiscard]] Simulation outcome_of(const Plan& plan) const {
    return judge_ ? judge_(plan) : simulate(planning_.trace, plan);
  }

  using Rank = std::tuple<std::chrono::nanoseconds, Bytes>;
  static Rank rank(const Simulation& simulation) { return {simulation.iteration, simulation.h2d + simulation.d2h}; }

  /// From now on, plans up to this time count as equally fast: the one that moves the fewest bytes is the best.
  void count_as_equal(std::chrono::nanoseconds up_to) { equal_up_to_ = up_to; }

  /// Returns true if the plan is better than all before it.
  bool offer(Plan candidate) {
    Simulation outcome = outcome_of(candidate);
    return offer(std::move(candidate), std::move(outcome));
  }
  bool offer(Plan candidate, Simulation outcome) {
    if (merit(outcome) >= merit(simulation_)) return false;
    take_over(std::move(candidate), std::move(outcome));
    return true;
  }

  /// Replaces the plan by one of the same or a better rank.
  bool offer_as_good(Plan candidate, Simulation outcome) {
    if (merit(outcome) > merit(simulation_)) return false;
    take_over(std::move(candidate), std::move(outcome));
    return true;
  }

  /// Replaces the plan, whatever it moves, if the new one takes no longer than `fast_enough`.
  bool offer_within(std::chrono::nanoseconds fast_enough, Plan candidate) {
    Simulation outcome = outcome_of(candidate);
    if (outcome.iteration > fast_enough) return false;
    take_over(std::move(candidate), std::move(outcome));
    return true;
  }

  [[nodiscard]] const Plan& plan() const { return plan_; }
  [[nodiscard]] const Simulation& simulation() const { return simulation_; }
  [[nodiscard]] Plan take() && { return std::move(plan_); }

 private:
  [[nodiscard]] Rank merit(const Simulation& simulation) const {
    return {std::max(simulation.iteration, equal_up_to_), std::get<Bytes>(rank(simulation))};
  }

  void take_over(Plan plan, Simulation simulation) {
    plan_ = std::move(plan);
    simulation_ = std::move(simulation);
  }

  const PlanningCase& planning_;
  Judge judge_;
  Plan plan_;
  Simulation simulation_;
  std::chrono::nanoseconds equal_up_to_{0};
};

}  // namespace swapmm::planning
