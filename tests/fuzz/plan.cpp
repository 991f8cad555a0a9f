// SPDX-License-Identifier: Apache-2.0
// Any text as a plan of version 2, and of version 1 for one small trace: training() of tests/unit/validator_test.cpp.
#include <swapmm/formats/plan_json.hpp>
#include <swapmm/formats/v2/plan_json.hpp>
#include <swapmm/plan/simulate.hpp>
#include <swapmm/plan/stalls.hpp>
#include <swapmm/plan/validate.hpp>

#include "fuzz/round_trip.hpp"
#include "fuzz/small_trace.hpp"

using namespace swapmm;

namespace {

void expect_runs(const Trace& trace, const Plan& plan) {
  const Simulation simulation = simulate(trace, plan);
  fuzz::expect(simulation.iteration >= simulation.compute, "an iteration takes as long as its operations");
  fuzz::expect(simulation.peak <= plan.machine.device_budget, "a valid plan stays within the budget");
  fuzz::expect(simulation.operations.size() == trace.operations.size(), "each operation has a span");
  fuzz::expect(simulation.commands.size() == plan.commands.size(), "each command has a span");
  for (const Stall& stall : find_stalls(trace, plan)) {
    fuzz::expect(stall.time.count() > 0, "a stall takes time");
    fuzz::expect(index(stall.operation) < trace.operations.size(), "an operation of the trace stalls");
    fuzz::expect(!describe(stall, trace, plan).empty(), "a stall has a description");
  }
}

/// The text as a plan of version 2. A plan of version 1 is one, too.
void read_as_version_2(std::string_view text, const Result<Plan>& version_1) {
  const auto plan = fuzz::read_both_ways(
      text, [](auto&& source) { return v2::read_plan(source); }, v2::write_plan);
  if (plan) fuzz::expect(v2::check_plan(*plan).has_value(), "what was read passes its check");
  if (!version_1) return;
  fuzz::expect(plan.has_value(), "a plan of version 1 is one of version 2", fuzz::message_of(plan));
  fuzz::expect(*plan == v2::from_version_1(*version_1), "a plan of version 1 is converted");
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Trace trace = fuzz::small_trace();
  static const std::string identity = digest(trace);
  const std::string_view text = fuzz::text_of(data, size);
  auto plan = fuzz::read_both_ways(
      text, [](auto&& source) { return read_plan(source); }, write_plan);
  read_as_version_2(text, plan);
  if (!plan) return 0;
  const std::vector<Violation> violations = validate(trace, *plan);
  for (const Violation& violation : violations) fuzz::expect_clear(violation.message);
  fuzz::expect(violations.size() <= 100, "at most 100 violations are told");
  const bool other = plan->trace_digest != identity;
  fuzz::expect(!other || !violations.empty(), "a plan for another trace is refused");
  if (other) {
    // No mutation hits on the digest: the rest of the plan is looked at as well.
    plan->trace_digest = identity;
    if (!validate(trace, *plan).empty()) return 0;
  } else if (!violations.empty()) {
    return 0;
  }
  expect_runs(trace, *plan);
  return 0;
}
