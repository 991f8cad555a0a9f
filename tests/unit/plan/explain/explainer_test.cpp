// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <swapmm/ir/liveness.hpp>
#include <swapmm/plan/explain.hpp>
#include <swapmm/plan/planners.hpp>
#include <swapmm/plan/simulate.hpp>
#include <swapmm/plan/validate.hpp>

#include "support/plan_text.hpp"
#include "support/random_trace.hpp"

using namespace swapmm;
using namespace swapmm::test;
using std::chrono::nanoseconds;

namespace {

std::vector<PlannedAbsence> absences_of(const Trace& trace, const Plan& plan) {
  for (const Violation& violation : validate(trace, plan)) FAIL_CHECK(violation.message);
  return find_absences(trace, plan);
}

/// The position of that operation among the uses of the tensor.
std::size_t position(const std::vector<Use>& uses, OperationId operation) {
  for (std::size_t i = 0; i < uses.size(); ++i) {
    if (uses[i].operation == operation) return i;
  }
  FAIL("no use of the tensor");
  return 0;
}

}  // namespace

TEST_CASE("absences: a value that leaves and comes back within an iteration, and one that does over its end") {
  Trace trace;
  trace.tensors = {tensor("x", 30, TensorKind::transient), tensor("w", 50, TensorKind::persistent)};
  trace.operations = {operation("write x", 10, {}, {0}), operation("read w", 100, {1}), operation("read x", 20, {0})};
  // x leaves for w. w is there between two uses, but for x.
  const Plan plan = test::plan(
      trace, machine(50), {},
      {allocate(0, 0, {previous_cmd(7)}, 0), swap_out(0, {op(0)}), release(0, {cmd(1)}), swap_in(1, 0, {cmd(2)}, 1),
       release(1, {op(1)}), swap_in(0, 0, {cmd(4)}, 2), swap_out(0, {cmd(5), op(2)}), release(0, {cmd(6), op(2)})});
  const std::vector<PlannedAbsence> absences = absences_of(trace, plan);
  REQUIRE(absences.size() == 2);
  // x out from 10 to 40, w in to 90, read to 190, x in to 220, read to 240, and out to 270 for nothing.
  CHECK(absences[0].tensor == TensorId{0});
  CHECK(absences[0].release == CommandId{2});
  CHECK(absences[0].swap_in == CommandId{5});
  CHECK(!absences[0].crosses_wrap);
  CHECK(absences[0].time == nanoseconds{150});
  CHECK(absences[0].last_use == OperationId{0});
  CHECK(absences[0].next_use == OperationId{2});

  CHECK(absences[1].tensor == TensorId{1});
  CHECK(absences[1].release == CommandId{4});
  CHECK(absences[1].swap_in == CommandId{3});
  CHECK(absences[1].crosses_wrap);
  CHECK(absences[1].time == nanoseconds{270 - 190 + 40});
  CHECK(absences[1].last_use == OperationId{1});
  CHECK(absences[1].next_use == OperationId{1});

  CHECK(host_bytes(trace, plan) == Bytes{80});
}

TEST_CASE("an input that gets a new value was not away, and takes the host twice its bytes") {
  Trace trace;
  trace.tensors = {tensor("x", 30, TensorKind::input), tensor("w", 50, TensorKind::persistent)};
  trace.operations = {operation("read", 10, {0, 1})};
  const Plan plan = test::plan(trace, machine(80), {resident(1, 30, false)},
                               {swap_in(0, 0, {previous_cmd(1), op(-1)}, 0), release(0, {op(0)})});
  CHECK(absences_of(trace, plan).empty());
  CHECK(host_bytes(trace, plan) == Bytes{60});  // w never moves
}

TEST_CASE("a plan without commands has no absences and needs no host memory") {
  Trace trace;
  trace.tensors = {tensor("w", 50, TensorKind::persistent)};
  trace.operations = {operation("read", 10, {0})};
  const Plan plan = test::plan(trace, machine(50), {resident(0, 0, false)}, {});
  CHECK(absences_of(trace, plan).empty());
  CHECK(host_bytes(trace, plan) == Bytes{0});
}

TEST_CASE("in plans of all planners each swap-in ends one absence, between a use and the next one") {
  std::size_t found = 0;
  for (std::uint64_t seed = 1; seed <= 600; ++seed) {
    std::mt19937_64 random(seed);
    const Trace trace = random_trace(random);
    const Machine machine = random_machine(random, Bytes{300});
    const Result<Plan> plan = make_plan(planners()[seed % planners().size()].name, trace, machine);
    if (!plan.has_value()) continue;
    CAPTURE(seed);
    const Liveness liveness = analyze_liveness(trace, machine.alignment);
    std::vector<std::size_t> swap_ins(trace.tensors.size(), 0);
    for (const Command& command : plan->commands) {
      if (command.kind == CommandKind::swap_in) ++swap_ins[index(command.tensor)];
    }
    std::vector<std::size_t> away(trace.tensors.size(), 0);
    nanoseconds before = nanoseconds::max();
    for (const PlannedAbsence& absence : find_absences(trace, *plan)) {
      const std::size_t t = index(absence.tensor);
      ++away[t];
      CHECK(absence.time <= before);
      before = absence.time;
      REQUIRE(absence.last_use.has_value());
      REQUIRE(absence.next_use.has_value());
      const std::vector<Use>& uses = liveness.uses[t];
      CHECK(position(uses, *absence.next_use) == (position(uses, *absence.last_use) + 1) % uses.size());
      CHECK(uses[position(uses, *absence.next_use)].access != Access::write);
    }
    for (std::size_t t = 0; t < trace.tensors.size(); ++t) {
      // The first one of an input brings a new value.
      const std::size_t fresh = trace.tensors[t].kind == TensorKind::input && !liveness.uses[t].empty() &&
                                liveness.uses[t].front().access != Access::write;
      CHECK(away[t] + fresh == swap_ins[t]);
      found += away[t];
    }
  }
  MESSAGE(found << " absences");
  CHECK(found > 500);
}

TEST_CASE("simulate with other times: those of trace and machine give the same, others what they say") {
  Trace trace;
  trace.tensors = {tensor("a", 30, TensorKind::persistent), tensor("b", 50, TensorKind::persistent)};
  trace.operations = {operation("update a", 10, {}, {}, {0}), operation("read b", 100, {1})};
  const Plan plan = test::plan(trace, machine(80), {resident(1, 30, true)},
                               {swap_in(0, 0, {previous_cmd(2)}, 0), swap_out(0, {op(0)}), release(0, {cmd(1)})});
  StepTimes times = step_times(trace, plan);
  CHECK(times.operations == std::vector<nanoseconds>{nanoseconds{10}, nanoseconds{100}});
  CHECK(times.commands == std::vector<nanoseconds>{nanoseconds{30}, nanoseconds{30}, nanoseconds{0}});
  CHECK(simulate(trace, plan, times).iteration == simulate(trace, plan).iteration);

  // a comes back while b is read: only where the copies take longer than that does anything wait.
  times.operations[1] = nanoseconds{200};
  Simulation simulation = simulate(trace, plan, times);
  CHECK(simulation.iteration == nanoseconds{210});
  CHECK(simulation.compute == nanoseconds{210});
  times.commands[0] = nanoseconds{300};
  simulation = simulate(trace, plan, times);
  CHECK(simulation.iteration == nanoseconds{340});  // 300 in, 10 updated, 30 out
  CHECK(simulation.compute == nanoseconds{210});
  CHECK(simulation.commands[0].end - simulation.commands[0].start == nanoseconds{300});
}
