// SPDX-License-Identifier: Apache-2.0
#include <swapmm/runtime/book/planning_task.hpp>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include <swapmm/plan/simulate.hpp>
#include <swapmm/plan/stalls.hpp>
#include <swapmm/plan/validate.hpp>
#include <swapmm/runtime/book/tiered_plan.hpp>
#include <swapmm/runtime/observe/replayed_program.hpp>

namespace swapmm::runtime {

namespace {

/// Recomputes the prediction of a plan. A lower bound that a user-supplied planner claims is kept if it is not above
/// the simulated time.
Prediction predict(const Trace& trace, const Plan& plan) {
  const Simulation simulation = simulate(trace, plan);
  Prediction prediction;
  prediction.iteration = simulation.iteration;
  prediction.compute = simulation.compute;
  prediction.h2d = simulation.h2d;
  prediction.d2h = simulation.d2h;
  prediction.peak = simulation.peak;
  const std::chrono::nanoseconds bound = plan.predicted.lower_bound;
  if (bound.count() > 0 && bound <= simulation.iteration) prediction.lower_bound = bound;
  if (simulation.iteration == simulation.compute) prediction.lower_bound = simulation.compute;  // nothing can be faster
  return prediction;
}

/// Values that are encoded on their way are in an encoded form. Empty if none is.
std::vector<HomeCopy> homes_of(const Trace& trace, const Plan& plan) {
  std::vector<HomeCopy> homes;
  if (std::ranges::none_of(trace.tensors, [](const TraceTensor& tensor) { return tensor.copied.has_value(); })) {
    return homes;
  }
  homes.reserve(plan.commands.size());
  for (const Command& command : plan.commands) {
    homes.push_back({trace.tensors[index(command.tensor)].copied ? Home::encoded : Home::host});
  }
  return homes;
}

}  // namespace

Result<CompiledPlan> adopt_plan(Program program, Plan plan, const Machine& machine) {
  // The plan must be valid on this machine, whatever machine it was made for.
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
  const std::vector<HomeCopy> homes = homes_of(program.trace, plan);
  Result<CompiledPlan> compiled = compile(std::move(program), std::move(plan), homes);
  if (compiled.has_value()) compiled->stalls = std::move(stalls);
  return compiled;
}

Result<CompiledPlan> adopt_plan(const Program& program, Plan plan, std::span<const Replay> replays,
                                const Machine& machine) {
  if (replays.empty()) return adopt_plan(program, std::move(plan), machine);
  if (!may_have_replays(program)) return Problem{"it runs operations again in another iteration"};
  Result<Program> replayed = with_replays(program, replays);
  if (!replayed.has_value()) return replayed.problem();
  Result<CompiledPlan> adopted = adopt_plan(*std::move(replayed), std::move(plan), machine);
  if (adopted.has_value()) adopted->without_replays = std::make_shared<const Program>(program);
  return adopted;
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

PlanningOptions PlanTask::within_time() const {
  PlanningOptions options;
  options.keeps_to_steps = time.keeps_to_steps;
  if (time.limit.count() > 0) {
    using Steady = std::chrono::steady_clock;
    options.go_on = [start = Steady::now(), limit = time.limit](const PlanningProgress& progress) {
      return Steady::now() - start < progress.part * limit;
    };
  }
  return options;
}

Result<CompiledPlan> PlanTask::plan_and_adopt() const {
  const PlanningOptions options = within_time();
  // Works on copies: if memory runs out, the task is unchanged.
  if (given) return adopt_given();
  if (!planner.is_own() && needs_tiers(program, machine)) {
    Result<CompiledPlan> tiered = make_tiered_plan(planner.name(), program, machine, options);
    // Otherwise host and file are planned for as one memory.
    if (tiered.has_value()) return tiered;
  }
  const Machine one = as_one_memory(program, machine);
  if (std::optional<Result<CompiledPlan>> replaying = plan_with_replays(one, options)) return *std::move(replaying);
  Result<Plan> made = planner.plan(program.trace, one, options);
  if (!made.has_value()) return made.problem();
  const std::string made_by = made->planner;
  if (planner.is_own()) made->machine = one;
  Result<CompiledPlan> adopted = adopt_plan(program, *std::move(made), one);
  if (!planner.is_own()) return adopted;
  if (!adopted.has_value()) return Problem{"planner \"" + made_by + "\": " + adopted.problem().message};
  adopted->plan.predicted = predict(program.trace, adopted->plan);
  return adopted;
}

// Nothing if the planner, or the program, knows no replays.
std::optional<Result<CompiledPlan>> PlanTask::plan_with_replays(const Machine& one,
                                                                const PlanningOptions& options) const {
  if (planner.name() != "best" || !allows_replays || !may_have_replays(program)) return std::nullopt;
  Result<PlanWithWays> made = plan_with_ways(trace_with_replayable(program), one, options);
  if (!made.has_value()) return made.problem();
  return adopt_plan(program, std::move(made->plan), made->ways.replays, one);
}

Result<CompiledPlan> PlanTask::adopt_given() const {
  if (given->tiered && machine.tiers) return adopt_tiered_plan(program, *given->tiered, machine);
  if (const Check check = may_be_followed(*given, allows_replays); !check) return check.problem();
  Result<CompiledPlan> adopted = adopt_plan(program, given->plan, given->replays, machine);
  if (!adopted.has_value() || given->store_key.empty()) return adopted;
  // It was made with the times of an earlier run: what it promises here is worked out with those of this one.
  adopted->plan.machine = as_one_memory(program, machine);
  adopted->plan.predicted.lower_bound = {};
  adopted->plan.predicted = predict(adopted->program.trace, adopted->plan);
  adopted->stalls = find_stalls(adopted->program.trace, adopted->plan);
  return adopted;
}

void PlanTask::run() {
  if (question != nullptr) {
    question->answer(within_time());
  } else {
    result = plan_and_adopt();
  }
  done.store(true, std::memory_order_release);
}

}  // namespace swapmm::runtime
