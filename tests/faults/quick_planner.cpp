// SPDX-License-Identifier: Apache-2.0
#include "faults/quick_planner.hpp"

#include <chrono>
#include <cstdint>

#include <swapmm/plan/baselines/on_demand.hpp>
#include <swapmm/plan/planners.hpp>
#include <swapmm/plan/problem/planning_case.hpp>
#include <swapmm/plan/schedule/fit.hpp>
#include <swapmm/plan/schedule/schedule.hpp>

namespace swapmm::test {
namespace {

using namespace swapmm::planning;

Result<Plan> plan_quickly(const Trace& trace, const Machine& machine, const PlanningOptions&) {
  const Result<PlanningCase> planning = make_planning_case(trace, machine);
  if (!planning) return planning.problem();
  Result<Plan> plan = build_fitting_plan(*planning, "quick", Pace::between_operations, [&](std::uint64_t bytes) {
    return on_demand_stays(*planning, Victim::used_furthest_ahead, bytes);
  });
  if (plan) finish_plan(*planning, *plan, std::chrono::nanoseconds{0});
  return plan;
}

}  // namespace

std::string_view quick_planner() {
  static const bool provided = (provide_planner_ilp(plan_quickly), true);
  return provided ? "ilp" : "";
}

}  // namespace swapmm::test
