// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/planners.hpp>

#include <algorithm>
#include <atomic>
#include <iterator>
#include <string>
#include <utility>

#include <swapmm/plan/baselines/on_demand.hpp>
#include <swapmm/plan/baselines/slack.hpp>
#include <swapmm/plan/baselines/vdnn.hpp>
#include <swapmm/plan/excess_overlap/excess_overlap.hpp>
#include <swapmm/plan/schedule/fit.hpp>
#include <swapmm/plan/schedule/schedule.hpp>
#include <swapmm/plan/search/best.hpp>

namespace swapmm::planning {
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

Result<Plan> plan_per_operation(const Trace& trace, const Machine& machine, const PlanningOptions&) {
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

Result<Plan> plan_on_demand(const Trace& trace, const Machine& machine, const PlanningOptions&) {
  return plan_with_victim(trace, machine, "on-demand", Victim::least_recently_used);
}

Result<Plan> plan_belady(const Trace& trace, const Machine& machine, const PlanningOptions&) {
  return plan_with_victim(trace, machine, "belady", Victim::used_furthest_ahead);
}

Result<Plan> plan_vdnn_all(const Trace& trace, const Machine& machine, const PlanningOptions&) {
  return plan_case(trace, machine, [](const PlanningCase& planning) {
    return build_vdnn_plan(planning, VdnnOffload::all, "vdnn-all");
  });
}

Result<Plan> plan_vdnn_conv(const Trace& trace, const Machine& machine, const PlanningOptions&) {
  return plan_case(trace, machine, [](const PlanningCase& planning) {
    return build_vdnn_plan(planning, VdnnOffload::convolutions, "vdnn-conv");
  });
}

Result<Plan> plan_slack(const Trace& trace, const Machine& machine, const PlanningOptions&) {
  return plan_case(trace, machine, [](const PlanningCase& planning) { return build_slack_plan(planning, "slack"); });
}

Result<Plan> plan_excess_overlap(const Trace& trace, const Machine& machine, const PlanningOptions& options) {
  return plan_case(trace, machine, [&](const PlanningCase& planning) {
    return build_excess_overlap_plan(planning, "excess-overlap", options);
  });
}

std::span<const NamedPlanner> planners_before_best();

Result<Plan> plan_best(const Trace& trace, const Machine& machine, const PlanningOptions& options) {
  const Result<PlanningCase> planning = make_planning_case(trace, machine);
  if (!planning) return planning.problem();
  Result<ProvenPlan> best = build_best_plan(*planning, options, planners_before_best());
  if (!best) return best.problem();
  best->plan.planner = "best";
  finish_plan(*planning, best->plan, best->lower_bound);
  return std::move(best->plan);
}

/// Of the optional component, which the core does not link.
std::atomic<Planner> provided_ilp{nullptr};

Result<Plan> plan_ilp(const Trace& trace, const Machine& machine, const PlanningOptions& options) {
  if (const Planner make = provided_ilp.load()) return make(trace, machine, options);
  return Problem{
      "the planner \"ilp\" is not part of this program: install COIN-OR Cbc (Debian: coinor-libcbc-dev) where swapmm "
      "is built, link the target swapmm::ilp (component ilp of find_package(swapmm)), and call swapmm::provide_ilp()"};
}

constexpr NamedPlanner all_planners[] = {
    {"per-operation", plan_per_operation, "every bundle in before its operation and out after it, one at a time"},
    {"on-demand", plan_on_demand, "bundles in when they are needed, least recently used out where room lacks"},
    {"belady", plan_belady, "on demand, with what is used furthest ahead out where room lacks"},
    {"vdnn-all", plan_vdnn_all, "every operation's inputs go out in the forward half, and come back one layer ahead"},
    {"vdnn-conv", plan_vdnn_conv, "the same for the inputs of convolutions alone"},
    {"slack", plan_slack, "large tensors that are not used for longer than their copies take go out meanwhile"},
    {"excess-overlap", plan_excess_overlap, "copies run under the operations before those that would wait for them"},
    {"best", plan_best, "searches for the least time, and says how far from it the plan is at most"},
    {"ilp", plan_ilp, "an integer linear program, solved by COIN-OR Cbc"},  // the last one: it may not be there
};

std::span<const NamedPlanner> planners_before_best() {
  const auto* const best = std::find_if(std::begin(all_planners), std::end(all_planners),
                                        [](const NamedPlanner& planner) { return planner.name == "best"; });
  return {std::begin(all_planners), best};
}

}  // namespace
}  // namespace swapmm::planning

namespace swapmm {

std::span<const NamedPlanner> planners() {
  const std::span<const NamedPlanner> all = planning::all_planners;
  return planning::provided_ilp.load() ? all : all.first(all.size() - 1);
}

void provide_planner_ilp(Planner make) { planning::provided_ilp.store(make); }

Result<Plan> make_plan(std::string_view planner, const Trace& trace, const Machine& machine,
                       const PlanningOptions& options) {
  for (const NamedPlanner& known : planning::all_planners) {
    if (known.name == planner) return known.make(trace, machine, options);
  }
  std::string message = "no planner is called \"" + std::string(planner) + "\"; there are";
  for (const NamedPlanner& known : planners()) {
    message += (&known == planning::all_planners ? " " : ", ") + std::string(known.name);
  }
  return Problem{message};
}

}  // namespace swapmm
