// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/ways/turn.hpp>

#include <optional>
#include <span>
#include <utility>

#include <swapmm/plan/planners/before_best.hpp>

namespace swapmm::planning {

std::optional<Problem> TurnOfBest::begin(WrittenTrace written, const Machine& machine, const BestOptions& options,
                                         const PlanningOptions& limits) {
  trace = std::move(written.trace);
  encoded = std::move(written.encoded);
  Result<PlanningCase> made = make_planning_case(trace, machine);
  if (!made) return made.problem();
  planning.emplace(*std::move(made));
  if (!first) {
    Result<Plan> any = first_plan_of_best(*planning);
    if (!any) return any.problem();
    first = *std::move(any);
  }
  std::span<const NamedPlanner> others;
  if (options.others.on) others = planners_before_best();
  run.emplace(*planning, options, limits, others, *std::move(first));
  return std::nullopt;
}

}  // namespace swapmm::planning
