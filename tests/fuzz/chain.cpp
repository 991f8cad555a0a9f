// SPDX-License-Identifier: Apache-2.0
// Any bytes as a planner, a small trace and a machine: planned, validated, simulated, bounded, written and read.
#include <memory>
#include <sstream>

#include <swapmm/formats/plan_json.hpp>
#include <swapmm/plan/planners.hpp>
#include <swapmm/plan/relaxation/lower_bound.hpp>
#include <swapmm/plan/simulate.hpp>
#include <swapmm/plan/stalls.hpp>
#include <swapmm/plan/validate.hpp>

#include "fuzz/decoded_case.hpp"
#include "fuzz/target.hpp"

using namespace swapmm;

namespace {

std::string shown(const Plan& plan) {
  std::ostringstream out;
  write_plan(out, plan);
  return out.str();
}

void expect_valid(const Trace& trace, const Plan& plan, const std::string& text) {
  for (const Violation& violation : validate(trace, plan)) {
    fuzz::expect(false, "a planner's plan is valid", violation.message + '\n' + text);
  }
}

void expect_as_predicted(const Trace& trace, const Plan& plan, const std::string& text) {
  const Simulation simulation = simulate(trace, plan);
  const Prediction& predicted = plan.predicted;
  fuzz::expect(predicted.iteration == simulation.iteration, "the time is as predicted", text);
  fuzz::expect(predicted.compute == simulation.compute, "the computation is as predicted", text);
  fuzz::expect(predicted.h2d == simulation.h2d, "the bytes in are as predicted", text);
  fuzz::expect(predicted.d2h == simulation.d2h, "the bytes out are as predicted", text);
  fuzz::expect(predicted.peak == simulation.peak, "the peak is as predicted", text);
  if (!fuzz::clock_suffices(trace, plan.machine)) return;
  fuzz::expect(predicted.peak <= plan.machine.device_budget, "the peak is within the budget", text);
  fuzz::expect(predicted.iteration >= predicted.compute, "an iteration takes as long as its operations", text);
}

void expect_bounded(const Trace& trace, const Plan& plan, const std::string& text) {
  // The planner has called it with more effort; a rough bound is one too.
  if (!fuzz::clock_suffices(trace, plan.machine)) return;
  const auto bound = lower_bound(trace, plan.machine, {.groups = 3, .options = 100, .rounds = 1});
  fuzz::expect(bound.has_value(), "where there is a plan there is a bound", text);
  const std::string numbers =
      std::to_string(bound->count()) + " and " + std::to_string(plan.predicted.iteration.count());
  fuzz::expect(*bound <= plan.predicted.iteration, "no plan is below the lower bound", numbers + '\n' + text);
  fuzz::expect(plan.predicted.lower_bound <= plan.predicted.iteration, "nor below the bound that it names",
               std::to_string(plan.predicted.lower_bound.count()) + '\n' + text);
}

void expect_round_trip(const Plan& plan, const std::string& text) {
  const auto again = read_plan(std::string_view(text));
  fuzz::expect(again.has_value(), "a plan that was written can be read", again ? "" : again.problem().message);
  fuzz::expect(*again == plan, "a plan is read as it was written", text);
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Decoder in({data, size});
  const std::string_view planner = fuzz::decoded_planner(in);
  const Trace trace = fuzz::decoded_trace(in);
  if (!check_trace(trace)) return 0;
  const Machine machine = fuzz::decoded_machine(in, trace);
  if (!check_machine(machine)) return 0;

  // So few questions that the searches of one input end within milliseconds.
  int questions = 3;
  PlanningOptions options;
  options.go_on = [&questions](const PlanningProgress&) { return --questions >= 0; };
  const auto plan = make_plan(planner, trace, machine, options);
  if (!plan) {
    fuzz::expect_clear(plan.problem().message);
    return 0;
  }
  fuzz::expect(plan->trace_digest == digest(trace), "a plan names its trace");
  fuzz::expect(plan->machine == machine, "a plan names its machine");
  const std::string text = shown(*plan);
  expect_valid(trace, *plan, text);
  expect_as_predicted(trace, *plan, text);
  expect_bounded(trace, *plan, text);
  expect_round_trip(*plan, text);
  for (const Stall& stall : find_stalls(trace, *plan)) {
    fuzz::expect(!describe(stall, trace, *plan).empty(), "a stall has a description");
  }
  return 0;
}
