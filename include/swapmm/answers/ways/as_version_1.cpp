// SPDX-License-Identifier: Apache-2.0
#include <swapmm/answers/ways/as_version_1.hpp>

#include <chrono>
#include <cstddef>
#include <utility>
#include <vector>

#include <swapmm/plan/problem/planning_case.hpp>
#include <swapmm/plan/v2/machine.hpp>
#include <swapmm/plan/v2/planners.hpp>
#include <swapmm/plan/v2/validate.hpp>
#include <swapmm/plan/v2/ways.hpp>
#include <swapmm/plan/ways.hpp>

namespace swapmm::answers {
namespace {

using Clock = std::chrono::steady_clock;

Result<v2::Plan> make_plan(const std::string& planner, const Trace& trace, const Machine& machine,
                           const PlanningOptions& options) {
  if (planner != "best") return v2::make_plan(planner, trace, v2::from_version_1(machine), options);
  const Result<PlanWithWays> made = plan_with_ways(trace, machine, options);
  if (!made) return made.problem();
  return v2::from_ways(trace, *made);
}

}  // namespace

Result<AsVersion1> as_version_1(const Trace& trace, const v2::Plan& plan) {
  Result<PlanWithWays> made = v2::to_ways(trace, plan);
  if (!made) return made.problem();
  Result<WrittenTrace> written = with_ways(trace, made->ways);
  if (!written) return written.problem();
  for (std::size_t i = 0; i < written->steps.size(); ++i) {
    if (written->steps[i].kind == WrittenStep::Kind::replay) written->trace.operations[i].name += " (again)";
  }
  made->plan.predicted.compute = planning::compute_time(trace);  // without what the plan adds
  return AsVersion1{std::move(written->trace), std::move(made->plan), ways_used(trace, plan)};
}

PlannedWays plan_ways(const std::string& planner, const Trace& trace, const Machine& machine, PlanningOptions options) {
  PlannedWays result{{Problem{""}, {}, {}}, {}, {}, {}};
  options.note = [&](const std::string& note) { result.planned.notes.push_back(note); };
  const Clock::time_point start = Clock::now();
  Result<v2::Plan> plan = make_plan(planner, trace, machine, options);
  result.planned.took = Clock::now() - start;
  if (plan) {
    if (const std::vector<Violation> violations = v2::validate(trace, *plan); !violations.empty()) {
      plan = Problem{"planner " + planner +
                     " made a plan that is not valid, which is a mistake of swapmm: " + violations.front().message};
    }
  }
  Result<AsVersion1> as_one = plan ? as_version_1(trace, *plan) : Result<AsVersion1>(plan.problem());
  if (!as_one) {
    result.planned.plan = as_one.problem();
    return result;
  }
  result.planned.plan = std::move(as_one->plan);
  result.trace = std::move(as_one->trace);
  result.used = as_one->used;
  result.plan = *std::move(plan);
  return result;
}

}  // namespace swapmm::answers
