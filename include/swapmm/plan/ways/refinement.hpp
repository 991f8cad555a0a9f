// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
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
#include <swapmm/plan/ways/program/history.hpp>
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
/// until it waits for none, or has no other way for them. Plans for small traces take less time than ratings: there,
/// the other choices, and those with checkpoints, are planned for as well, and the best one is changed at random
/// (WayChanges). Then ways that do not make the plan faster are left out.
class WayRefinement {
 public:
  /// Refers to all arguments.
  WayRefinement(const Trace& trace, const ValueHistory& history, WayChoice& choice, const PlanningCase& planning,
                const WayRating& rating, const WaysOptions& options, const PlanningOptions& limits);

  /// Begins with `first`, then with the criteria, and with parts and multiples of their price. `others`: choices that a
  /// small trace is also planned with. Returns the choice with the fastest plan; none if there is no plan, or no time
  /// for one. To be called once.
  [[nodiscard]] std::optional<RefinedWays> run(const Candidate& first, const WayCriteria& criteria,
                                               std::vector<Candidate> others);

 private:
  [[nodiscard]] bool has_tries() const { return tries_ < most_tries_ && (!limits_.go_on || limits_.go_on({})); }
  /// Whether there is time for one more plan of a changed choice.
  [[nodiscard]] bool goes_on_changing() const;
  /// A plan for the ways. Null if there is none, or if it cannot be better than the best one. One that takes longer
  /// than `most` is not looked for.
  [[nodiscard]] std::unique_ptr<TurnOfBest> plan(Candidate candidate,
                                                 std::optional<std::chrono::nanoseconds> most = {});
  /// Makes it the best one if it is as fast as that. Returns whether it is.
  bool offer(std::unique_ptr<TurnOfBest> turn);
  void follow_stalls(WayCriteria criteria, double factor);
  void plan_others(std::vector<Candidate> others);
  void plan_checkpoints();
  void change_at_random();
  /// Plans for the ways unless there was a plan, and offers it. Ends early where it cannot be as fast as the best one.
  void try_ways(Candidate candidate);
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
  std::size_t changes_left_;       // plans of other choices and of changed ones
  std::vector<WaysBack> planned_;  // for which there is, or was, a plan
  std::unique_ptr<TurnOfBest> best_;
};

}  // namespace swapmm::planning
