// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cstdint>
#include <optional>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include <swapmm/ir/liveness.hpp>
#include <swapmm/plan/planners.hpp>
#include <swapmm/plan/simulate.hpp>
#include <swapmm/plan/validate.hpp>

#include "support/brute_plans.hpp"
#include "support/effort.hpp"
#include "support/plan_executor.hpp"
#include "support/plan_mutations.hpp"
#include "support/random_trace.hpp"
#include "support/told.hpp"

using namespace swapmm;
using namespace swapmm::test;

namespace {

struct Case {
  Trace trace;
  Plan plan;
};

/// A random program and its plainest plan, on a machine that fits its bundles at least.
std::optional<Case> random_case(std::mt19937_64& random) {
  RandomTraceOptions options;
  options.operations = 1 + one_of(random, 8);
  options.tensors = 1 + one_of(random, 5);
  options.host_reads = chance(random, 0.5) ? 0.3 : 0.0;
  Case result;
  result.trace = random_trace(random, options);
  Bytes all;
  for (const TraceTensor& tensor : result.trace.tensors) all += tensor.bytes + Bytes{64};
  const Bytes bundle = analyze_liveness(result.trace, Bytes{64}).largest_bundle;
  const Machine machine = random_machine(random, chance(random, 0.6) ? all : bundle);
  std::optional<Plan> plan = brute_plan(result.trace, machine);
  if (!plan) return std::nullopt;
  result.plan = std::move(*plan);
  return result;
}

/// A valid plan of another style, if a planner finds one.
void replan(std::mt19937_64& random, Case& one) {
  const NamedPlanner& planner = planners()[one_of(random, planners().size())];
  const Result<Plan> plan = planner.make(one.trace, one.plan.machine, {});
  if (plan && validate(one.trace, *plan).empty()) one.plan = *plan;
}

/// For a person who must find out what went wrong.
std::string shown(const Trace& trace, const Plan& plan) {
  std::ostringstream text;
  const auto ids = [&](const std::vector<TensorId>& list) {
    for (const TensorId id : list) text << ' ' << index(id);
  };
  for (std::size_t t = 0; t < trace.tensors.size(); ++t) {
    const TraceTensor& tensor = trace.tensors[t];
    text << "\ntensor " << t << ' ' << to_string(tensor.kind) << ' ' << tensor.bytes.value << " from "
         << tensor.available_from;
  }
  for (std::size_t i = 0; i < trace.operations.size(); ++i) {
    text << "\noperation " << i << " r";
    ids(trace.operations[i].reads);
    text << " w";
    ids(trace.operations[i].writes);
    text << " u";
    ids(trace.operations[i].updates);
  }
  for (const HostRead& read : trace.host_reads) {
    text << "\nhost reads " << index(read.tensor) << " after " << index(read.after_operation);
  }
  text << (plan.machine.duplex == Duplex::half ? "\nhalf duplex" : "\nfull duplex");
  for (const Resident& resident : plan.initial) {
    text << "\ninitial " << index(resident.tensor) << " at " << resident.offset.value
         << (resident.host_valid ? " valid" : "");
  }
  for (std::size_t j = 0; j < plan.commands.size(); ++j) {
    const Command& command = plan.commands[j];
    text << "\ncommand " << j << ' ' << to_string(command.kind) << ' ' << index(command.tensor) << " at "
         << command.offset.value << " after";
    for (const Wait& wait : command.after) {
      text << (wait.on == Wait::On::operation ? " o" : wait.previous ? " previous c" : " c") << wait.index;
    }
    if (command.before_operation) text << " before " << *command.before_operation;
  }
  return text.str();
}

}  // namespace

TEST_CASE("random traces and machines pass their own checks") {
  std::mt19937_64 random{1};
  for (int round = 0; round < 2000; ++round) {
    RandomTraceOptions options;
    options.operations = 1 + one_of(random, 12);
    options.tensors = 1 + one_of(random, 8);
    const Trace trace = random_trace(random, options);
    const Check trace_check = check_trace(trace);
    REQUIRE_MESSAGE(trace_check.has_value(), trace_check.problem().message);
    const Machine machine = random_machine(random, Bytes{1 + one_of(random, 1000)});
    const Check machine_check = check_machine(machine);
    REQUIRE_MESSAGE(machine_check.has_value(), machine_check.problem().message);
  }
}

TEST_CASE("the plainest plan of every random trace is valid and runs without a fault") {
  std::mt19937_64 random{2};
  int plans = 0;
  while (plans < 2000) {
    std::optional<Case> one = random_case(random);
    if (!one) continue;
    ++plans;
    if (chance(random, 0.5)) spread_out(one->trace, one->plan);
    const auto violations = validate(one->trace, one->plan);
    REQUIRE_MESSAGE(violations.empty(), told(violations));
    const Durations durations = random_durations(random, one->trace, one->plan, 4);
    const Execution execution = execute(one->trace, one->plan, durations, true);
    REQUIRE_MESSAGE(execution.faults.empty(), execution.faults.front());
  }
}

TEST_CASE("a plan that the validator accepts goes right whatever operations and copies take") {
  std::mt19937_64 random{3};
  int cases = 0;
  int accepted = 0;
  int refused = 0;
  const int wanted = test::effort(2000, 20);
  while (cases < wanted) {
    std::optional<Case> one = random_case(random);
    if (!one) continue;
    ++cases;
    if (chance(random, 0.6)) spread_out(one->trace, one->plan);
    if (chance(random, 0.4)) replan(random, *one);
    // A walk through valid plans: what is refused is taken back.
    for (int step = 0; step < 40; ++step) {
      Plan changed = one->plan;
      const std::string_view what = mutate(random, one->trace, changed);
      if (changed == one->plan) continue;
      if (!validate(one->trace, changed).empty()) {
        ++refused;
        continue;
      }
      ++accepted;
      for (int run = 0; run < 3; ++run) {
        const Durations durations = random_durations(random, one->trace, changed, 4);
        const Execution execution = execute(one->trace, changed, durations, true);
        REQUIRE_MESSAGE(execution.faults.empty(),
                        what << ": " << execution.faults.front() << shown(one->trace, changed));
      }
      one->plan = std::move(changed);
    }
  }
  CHECK(accepted > 5 * wanted);
  CHECK(refused > 5 * wanted);
}

TEST_CASE("the simulator's times are those of an execution event by event") {
  std::mt19937_64 random{4};
  int cases = 0;
  while (cases < 1000) {
    std::optional<Case> one = random_case(random);
    if (!one) continue;
    ++cases;
    if (chance(random, 0.6)) spread_out(one->trace, one->plan);
    if (chance(random, 0.4)) replan(random, *one);
    for (int step = 0; step < 20; ++step) {
      Plan changed = one->plan;
      mutate(random, one->trace, changed);
      if (validate(one->trace, changed).empty()) one->plan = std::move(changed);
    }
    constexpr std::size_t iterations = 6;
    const Execution execution =
        execute(one->trace, one->plan, nominal_durations(one->trace, one->plan, iterations), false);
    std::vector<std::int64_t> simulated;
    for (const auto end : iteration_ends(one->trace, one->plan, iterations)) simulated.push_back(end.count());
    REQUIRE(simulated == execution.iteration_ends);
    const Simulation simulation = simulate(one->trace, one->plan);
    CHECK(simulation.iteration >= simulation.compute);
    CHECK(simulation.peak <= round_up(one->plan.machine.device_budget, one->plan.machine.alignment));
  }
}
