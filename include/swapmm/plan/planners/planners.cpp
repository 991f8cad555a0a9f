// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/planners.hpp>

#include <array>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/plan/baselines/excess.hpp>
#include <swapmm/plan/baselines/on_demand.hpp>
#include <swapmm/plan/baselines/slack.hpp>
#include <swapmm/plan/baselines/vdnn.hpp>
#include <swapmm/plan/excess_overlap/excess_overlap.hpp>
#include <swapmm/plan/planners/before_best.hpp>
#include <swapmm/plan/schedule/schedule.hpp>
#include <swapmm/plan/search/best.hpp>

namespace swapmm::planning {
namespace {

/// Calls `build(planning)` with the case of trace and machine, then adds digest and prediction.
template <class Build>
Result<Plan> plan_case(const Trace& trace, const Machine& machine, const BoundOptions& bound, Build&& build) {
  Result<PlanningCase> planning = make_planning_case(trace, machine);
  if (!planning) return planning.problem();
  Result<Plan> plan = build(*planning);
  if (plan) finish_plan(*planning, *plan, bound);
  return plan;
}

Planner with_victim(std::string name, Victim victim, const OnDemandOptions& options) {
  return [name = std::move(name), victim, options](const Trace& trace, const Machine& machine, const PlanningOptions&) {
    return plan_case(trace, machine, options.bound, [&](const PlanningCase& planning) {
      return build_on_demand_plan(planning, name, Pace::between_operations, victim, options);
    });
  };
}

NamedPlanner per_operation(const BoundOptions& bound) {
  const auto make = [bound](const Trace& trace, const Machine& machine, const PlanningOptions&) {
    return plan_case(trace, machine, bound, [](const PlanningCase& planning) {
      return build_per_operation_plan(planning, Pace::one_at_a_time, "per-operation");
    });
  };
  return {"per-operation", make, "every bundle in before its operation and out after it, one at a time"};
}

/// All before `best`, in their order.
std::array<NamedPlanner, 8> before_best(const BoundOptions& bound) {
  return {per_operation(bound),
          on_demand_planner({.bound = bound}),
          belady_planner({.bound = bound}),
          vdnn_planner({.offload = VdnnOffload::all, .bound = bound}),
          vdnn_planner({.offload = VdnnOffload::convolutions, .bound = bound}),
          slack_planner({.bound = bound}),
          excess_planner({.bound = bound}),
          excess_overlap_planner({.bound = bound})};
}

}  // namespace

std::span<const NamedPlanner> planners_before_best() {
  // `best` knows the bound of the case, and finding it takes longer than such a plan.
  static const std::array all = before_best({.usual = {.rounds = 0}, .long_traces = {.rounds = 0}});
  return all;
}

}  // namespace swapmm::planning

namespace swapmm {

NamedPlanner per_operation_planner() { return planning::per_operation({}); }

NamedPlanner on_demand_planner(const OnDemandOptions& options) {
  return {"on-demand", planning::with_victim("on-demand", planning::Victim::least_recently_used, options),
          "bundles in when they are needed, least recently used out where room lacks"};
}

NamedPlanner belady_planner(const OnDemandOptions& options) {
  return {"belady", planning::with_victim("belady", planning::Victim::used_furthest_ahead, options),
          "on demand, with what is used furthest ahead out where room lacks"};
}

NamedPlanner vdnn_planner(const VdnnOptions& options) {
  const bool all = options.offload == VdnnOffload::all;
  const std::string name = all ? "vdnn-all" : "vdnn-conv";
  const auto make = [name, options](const Trace& trace, const Machine& machine, const PlanningOptions&) {
    return planning::plan_case(trace, machine, options.bound, [&](const planning::PlanningCase& planning) {
      return build_vdnn_plan(planning, options, name);
    });
  };
  return {name, make,
          all ? "every operation's inputs go out in the forward half, and come back one layer ahead"
              : "the same for the inputs of convolutions alone"};
}

NamedPlanner slack_planner(const SlackOptions& options) {
  const auto make = [options](const Trace& trace, const Machine& machine, const PlanningOptions&) {
    return planning::plan_case(trace, machine, options.bound, [&](const planning::PlanningCase& planning) {
      return build_slack_plan(planning, options, "slack");
    });
  };
  return {"slack", make, "large tensors that are not used for longer than their copies take go out meanwhile"};
}

NamedPlanner excess_planner(const ExcessOptions& options) {
  const auto make = [options](const Trace& trace, const Machine& machine, const PlanningOptions&) {
    return planning::plan_case(trace, machine, options.bound, [&](const planning::PlanningCase& planning) {
      return build_excess_plan(planning, options, "excess");
    });
  };
  return {"excess", make,
          "the published heuristic: swap-ins move under the operation before that hides the most of them"};
}

NamedPlanner excess_overlap_planner(const ExcessOverlapOptions& options) {
  const auto make = [options](const Trace& trace, const Machine& machine, const PlanningOptions& limits) {
    return planning::plan_case(trace, machine, options.bound, [&](const planning::PlanningCase& planning) {
      return build_excess_overlap_plan(planning, "excess-overlap", options, limits);
    });
  };
  return {"excess-overlap", make, "copies run under the operations before those that would wait for them"};
}

NamedPlanner best_planner(const BestOptions& options) {
  const auto make = [options](const Trace& trace, const Machine& machine,
                              const PlanningOptions& limits) -> Result<Plan> {
    const Result<planning::PlanningCase> planning = planning::make_planning_case(trace, machine);
    if (!planning) return planning.problem();
    std::span<const NamedPlanner> others;
    if (options.others.on) others = planning::planners_before_best();
    Result<planning::ProvenPlan> best = build_best_plan(*planning, options, limits, others);
    if (!best) return best.problem();
    best->plan.planner = "best";
    finish_plan(*planning, best->plan, best->lower_bound);
    return std::move(best->plan);
  };
  return {"best", make, "searches for the least time, and says how far from it the plan is at most"};
}

std::span<const NamedPlanner> planners() {
  static const std::vector all = [] {
    const std::array others = planning::before_best({});
    std::vector<NamedPlanner> known(others.begin(), others.end());
    known.push_back(best_planner());
    return known;
  }();
  return all;
}

Result<Plan> make_plan(std::string_view planner, const Trace& trace, const Machine& machine,
                       const PlanningOptions& options) {
  for (const NamedPlanner& known : planners()) {
    if (known.name == planner) return known.make(trace, machine, options);
  }
  if (planner == "ilp") {
    return Problem{
        "the planner \"ilp\" has no name here: it is swapmm::ilp_planner() of the optional component ilp (target "
        "swapmm::ilp, which needs COIN-OR Cbc: Debian's coinor-libcbc-dev), called or handed to "
        "SchedulerOptions::planner"};
  }
  std::string message = "no planner is called \"" + std::string(planner) + "\"; there are";
  for (const NamedPlanner& known : planners()) message += (&known == &planners().front() ? " " : ", ") + known.name;
  return Problem{message};
}

}  // namespace swapmm
