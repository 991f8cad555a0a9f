// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <swapmm/plan/planners.hpp>
#include <swapmm/plan/schedule/fit.hpp>
#include <swapmm/plan/simulate.hpp>
#include <swapmm/plan/stalls.hpp>

#include "support/plan_text.hpp"
#include "support/random_trace.hpp"

using namespace swapmm;
using namespace swapmm::test;
using std::chrono::nanoseconds;

namespace {

/// a of 30 bytes is updated for 10 ns, b of 50 bytes read for 100 ns. There is room for one of them, and a byte takes
/// a nanosecond each way.
struct OneAtATime {
  OneAtATime() {
    trace.tensors = {tensor("a", 30, TensorKind::persistent), tensor("b", 50, TensorKind::persistent)};
    trace.operations = {operation("update a", 10, {}, {}, {0}), operation("read b", 100, {1})};
    // a comes once b has gone, b once a has been saved.
    schedule = plan(trace, machine(50), {resident(1, 0, true)},
                    {release(1, {op(-1)}), swap_in(0, 0, {cmd(0)}, 0), swap_out(0, {op(0)}), release(0, {cmd(2)}),
                     swap_in(1, 0, {cmd(3)}, 1)});
  }
  Trace trace;
  Plan schedule;
};

}  // namespace

TEST_CASE("a plan without a copy has no stalls") {
  Trace trace;
  trace.tensors = {tensor("a", 30, TensorKind::persistent)};
  trace.operations = {operation("update a", 10, {}, {}, {0})};
  CHECK(find_stalls(trace, plan(trace, machine(30), {resident(0, 0, false)}, {})).empty());
}

TEST_CASE("stalls name the copies that are waited for, the longest first") {
  const OneAtATime example;
  const std::vector<Stall> stalls = find_stalls(example.trace, example.schedule);
  REQUIRE(stalls.size() == 2);
  CHECK(stalls[0].operation == OperationId{1});
  CHECK(stalls[0].time == nanoseconds{80});  // a out, then b in
  REQUIRE(stalls[0].copy.has_value());
  CHECK(*stalls[0].copy == CommandId{4});
  CHECK(describe(stalls[0], example.trace, example.schedule) ==
        "operation \"read b\" waits for tensor \"b\" to come in");
  CHECK(stalls[1].operation == OperationId{0});
  CHECK(stalls[1].time == nanoseconds{30});
  CHECK(describe(stalls[1], example.trace, example.schedule) ==
        "operation \"update a\" waits for tensor \"a\" to come in");
}

TEST_CASE("an operation that waits for room names the tensor that goes out") {
  OneAtATime example;
  example.trace.operations[1] = operation("write b", 100, {}, {1});
  example.trace.tensors[1].kind = TensorKind::transient;
  example.schedule = plan(example.trace, machine(50), {},
                          {swap_in(0, 0, {previous_cmd(4)}, 0), swap_out(0, {op(0)}), release(0, {cmd(1)}),
                           allocate(1, 0, {cmd(2)}, 1), release(1, {op(1)})});
  const std::vector<Stall> stalls = find_stalls(example.trace, example.schedule);
  REQUIRE(stalls.size() == 2);
  CHECK(stalls[0].time == nanoseconds{30});
  std::vector<std::string> texts;
  for (const Stall& stall : stalls) texts.push_back(describe(stall, example.trace, example.schedule));
  CHECK(texts == std::vector<std::string>{"operation \"update a\" waits for tensor \"a\" to come in",
                                          "operation \"write b\" waits for the room of tensor \"a\" that goes out"});
}

TEST_CASE("the copy is found behind a chain of any length") {
  OneAtATime example;
  example.trace.operations[1] = operation("write b", 100, {}, {1});
  example.trace.tensors[1].kind = TensorKind::transient;
  constexpr std::int32_t links = 200'000;  // of bytes that are taken and given back, in no time
  std::vector<Command> commands{swap_in(0, 0, {}, 0), swap_out(0, {op(0)}), release(0, {cmd(1)})};
  for (std::int32_t i = 0; i < links; ++i) {
    commands.push_back(allocate(1, 0, {cmd(2 * i + 2)}));
    commands.push_back(release(1, {cmd(2 * i + 3), cmd(2 * i + 2)}));
  }
  commands.push_back(allocate(1, 0, {cmd(2 * links + 2)}, 1));
  commands.push_back(release(1, {op(1)}));
  commands.front().after = {previous_cmd(static_cast<std::int32_t>(commands.size()) - 1)};
  example.schedule = plan(example.trace, machine(50), {}, commands);
  const std::vector<Stall> stalls = find_stalls(example.trace, example.schedule);
  REQUIRE(stalls.size() == 2);
  for (const Stall& stall : stalls) CHECK(stall.time == nanoseconds{30});
  CHECK(stalls[0].copy == CommandId{0});
  CHECK(stalls[1].copy == CommandId{1});
}

TEST_CASE("stalls and durations are the iteration's time, for plans of all planners") {
  std::size_t steady = 0;
  std::size_t stalled = 0;
  std::size_t explained = 0;
  for (std::uint64_t seed = 1; seed <= 600; ++seed) {
    std::mt19937_64 random(seed);
    const Trace trace = random_trace(random);
    const Machine machine = random_machine(random, Bytes{300});
    const Result<Plan> made = make_plan(planners()[seed % planners().size()].name, trace, machine);
    if (!made.has_value()) continue;
    const Simulation simulation = simulate(trace, *made);
    if (simulation.operations.back().end != simulation.iteration) continue;  // iterations of different lengths
    ++steady;
    nanoseconds sum = simulation.compute;
    for (const Stall& stall : find_stalls(trace, *made)) {
      sum += stall.time;
      ++stalled;
      explained += stall.copy ? 1 : 0;
    }
    CHECK(sum == simulation.iteration);
  }
  MESSAGE(steady << " plans, " << stalled << " stalls, " << explained << " with their copy");
  CHECK(steady > 300);
  CHECK(stalled > 100);
  CHECK(explained == stalled);
}
