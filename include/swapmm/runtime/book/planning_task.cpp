// SPDX-License-Identifier: Apache-2.0
#include <swapmm/runtime/book/planning_task.hpp>

#include <utility>

#include <swapmm/plan/planners.hpp>
#include <swapmm/plan/stalls.hpp>
#include <swapmm/plan/validate.hpp>

namespace swapmm::runtime {

Result<CompiledPlan> adopt_plan(Program program, Plan plan, const Machine& machine) {
  // Whatever machine the plan was made for, it is to be valid on this one.
  plan.machine.device_budget = machine.device_budget;
  plan.machine.alignment = machine.alignment;
  plan.machine.max_allocation = machine.max_allocation;
  plan.machine.duplex = machine.duplex;
  const std::vector<Violation> violations = validate(program.trace, plan);
  if (!violations.empty()) {
    return Problem{"the plan breaks rule " + std::to_string(violations.front().rule) + ": " +
                   violations.front().message};
  }
  std::vector<Stall> stalls = find_stalls(program.trace, plan);
  Result<CompiledPlan> compiled = compile(std::move(program), std::move(plan));
  if (compiled.has_value()) compiled->stalls = std::move(stalls);
  return compiled;
}

void PlanTask::run_once() {
  if (taken.exchange(true, std::memory_order_acq_rel)) return;
  try {
    run();
  } catch (...) {
    taken.store(false, std::memory_order_release);
    throw;
  }
}

void PlanTask::run() {
  PlanningOptions options;
  if (time.count() > 0) {
    using Steady = std::chrono::steady_clock;
    options.go_on = [end = Steady::now() + time](const PlanningProgress&) { return Steady::now() < end; };
  }
  // By copies: where memory runs out, the task is as before.
  if (given) {
    result = adopt_plan(program, *given, machine);
  } else if (Result<Plan> made = make_plan(planner, program.trace, machine, options); made.has_value()) {
    result = adopt_plan(program, *std::move(made), machine);
  } else {
    result = made.problem();
  }
  done.store(true, std::memory_order_release);
}

}  // namespace swapmm::runtime
