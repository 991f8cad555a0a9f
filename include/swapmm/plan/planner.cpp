// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/planner.hpp>

#include <algorithm>
#include <string>

#include <swapmm/plan/excess_overlap.hpp>
#include <swapmm/plan/fit.hpp>
#include <swapmm/plan/on_demand.hpp>
#include <swapmm/plan/schedule.hpp>

namespace swapmm {
namespace {

/// `build(planning)` on the case of trace and machine, then digest and prediction.
template <class Build>
Result<Plan> plan_case(const Trace& trace, const Machine& machine, Build&& build) {
  Result<PlanningCase> planning = make_planning_case(trace, machine);
  if (!planning) return planning.problem();
  Result<Plan> plan = build(*planning);
  if (plan) finish_plan(*planning, *plan);
  return plan;
}

Result<Plan> plan_per_operation(const Trace& trace, const Machine& machine) {
  return plan_case(trace, machine, [](const PlanningCase& planning) {
    return build_per_operation_plan(planning, Pace::one_at_a_time, "per-operation");
  });
}

Result<Plan> plan_with_victim(const Trace& trace, const Machine& machine, std::string_view name, Victim victim) {
  return plan_case(trace, machine, [&](const PlanningCase& planning) {
    return build_fitting_plan(planning, name, Pace::between_operations,
                              [&](std::uint64_t bytes) { return on_demand_stays(planning, victim, bytes); });
  });
}

Result<Plan> plan_on_demand(const Trace& trace, const Machine& machine) {
  return plan_with_victim(trace, machine, "on-demand", Victim::least_recently_used);
}

Result<Plan> plan_belady(const Trace& trace, const Machine& machine) {
  return plan_with_victim(trace, machine, "belady", Victim::used_furthest_ahead);
}

Result<Plan> plan_excess_overlap(const Trace& trace, const Machine& machine) {
  return plan_case(trace, machine,
                   [](const PlanningCase& planning) { return build_excess_overlap_plan(planning, "excess-overlap"); });
}

constexpr NamedPlanner all_planners[] = {
    {"per-operation", plan_per_operation, "every bundle in before its operation and out after it, one at a time"},
    {"on-demand", plan_on_demand, "bundles in when they are needed, least recently used out where room lacks"},
    {"belady", plan_belady, "on demand, with what is used furthest ahead out where room lacks"},
    {"excess-overlap", plan_excess_overlap, "copies run under the operations before those that would wait for them"},
};

}  // namespace

std::span<const NamedPlanner> planners() { return all_planners; }

Result<Plan> make_plan(std::string_view planner, const Trace& trace, const Machine& machine) {
  for (const NamedPlanner& known : all_planners) {
    if (known.name == planner) return known.make(trace, machine);
  }
  std::string message = "no planner is called \"" + std::string(planner) + "\"; there are";
  for (const NamedPlanner& known : all_planners) {
    message += (&known == all_planners ? " " : ", ") + std::string(known.name);
  }
  return Problem{message};
}

}  // namespace swapmm
