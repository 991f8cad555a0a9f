// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/plan.hpp>
#include <swapmm/plan/planner.hpp>
#include <swapmm/plan/planner_options.hpp>
#include <swapmm/plan/problem/planning_case.hpp>
#include <swapmm/plan/ways.hpp>
#include <swapmm/plan/ways/candidate.hpp>
#include <swapmm/plan/ways/choices.hpp>
#include <swapmm/plan/ways/history.hpp>
#include <swapmm/plan/ways/turn.hpp>

namespace swapmm::planning {

/// A choice of ways, and a plan for the program that has them written out.
struct RefinedWays {
  Candidate choice;
  Plan plan;
};

/// Improves a choice of ways by plans for it: a quick round of `best` each.
///
/// The relaxed problem rates ways as if values could go in parts and found room everywhere. Where few large tensors
/// have room, its plans wait for copies that it does not see. So the prices of the values that a plan waits for rise,
/// until it waits for none, or has no other way for them. Then ways that do not make the plan faster are left out.
class WayRefinement {
 public:
  /// Refers to all arguments.
  WayRefinement(const Trace& trace, const ValueHistory& history, WayChoice& choice, const PlanningCase& planning,
                const WayRating& rating, const WaysOptions& options, const PlanningOptions& limits);

  /// Begins with `first`, then with the criteria, and with parts and multiples of their price. Returns the choice with
  /// the fastest plan; none if there is no plan, or no time for one. To be called once.
  [[nodiscard]] std::optional<RefinedWays> run(const Candidate& first, const WayCriteria& criteria);

 private:
  [[nodiscard]] bool has_tries() const { return tries_ < most_tries_ && (!limits_.go_on || limits_.go_on({})); }
  /// A plan for the ways, which counts as a try. Null if there is none, or if it cannot be better than the best one.
  [[nodiscard]] std::unique_ptr<TurnOfBest> plan(Candidate candidate);
  /// Makes it the best one if it is as fast as that. Returns whether it is.
  bool offer(std::unique_ptr<TurnOfBest> turn);
  void follow_stalls(WayCriteria criteria, double factor);
  void leave_out();
  /// The tensors whose copies the plan waits for, each once; none if it waits for nothing that counts.
  [[nodiscard]] std::vector<TensorId> waited_for(const TurnOfBest& turn) const;

  const Trace& trace_;
  const ValueHistory& history_;
  WayChoice& choice_;
  const PlanningCase& planning_;
  const WayRating& rating_;
  const WaysOptions& options_;
  const PlanningOptions& limits_;
  BestOptions quick_;
  std::size_t most_tries_;
  std::size_t tries_ = 0;
  std::vector<WaysBack> planned_;  // for which there is, or was, a plan
  std::unique_ptr<TurnOfBest> best_;
};

}  // namespace swapmm::planning
