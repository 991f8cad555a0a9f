// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include <swapmm/base/result.hpp>
#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/machine.hpp>
#include <swapmm/plan/plan.hpp>
#include <swapmm/plan/planner.hpp>
#include <swapmm/plan/planner_options.hpp>
#include <swapmm/plan/problem/planning_case.hpp>
#include <swapmm/plan/search/best.hpp>
#include <swapmm/plan/ways.hpp>
#include <swapmm/plan/ways/candidate.hpp>

namespace swapmm::planning {

/// A choice of ways, and the run of `best` for the program that has them written out.
struct TurnOfBest {
  explicit TurnOfBest(Candidate candidate) : choice(std::move(candidate)) {}
  TurnOfBest(const TurnOfBest&) = delete;
  TurnOfBest& operator=(const TurnOfBest&) = delete;

  /// Begins the run, with `first` if there is one. A Problem if there is no plan. `options` and `limits` outlive the
  /// run.
  [[nodiscard]] std::optional<Problem> begin(WrittenTrace written, const Machine& machine, const BestOptions& options,
                                             const PlanningOptions& limits);

  Candidate choice;
  bool is_other = false;               ///< for the program in its other division
  std::optional<Plan> first;           ///< a plan that is known
  Trace trace;                         ///< as written out
  std::vector<EncodedTensor> encoded;  ///< its tensors behind those of the original
  std::optional<PlanningCase> planning;
  std::optional<BestRun> run;
  bool has_run = false;  ///< for a round at least
};

}  // namespace swapmm::planning
