// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include <swapmm/formats/trace_json.hpp>
#include <swapmm/formats/v2/plan_json.hpp>
#include <swapmm/plan/v2/explain.hpp>
#include <swapmm/plan/v2/validate.hpp>

#include "support/v2/rich_plan.hpp"

namespace swapmm::v2::explain_test {

using std::chrono::nanoseconds;

struct Rich {
  Trace trace = read_trace(test::general::rich_trace).value();
  Plan plan = read_plan(test::general::rich_plan(digest(trace))).value();

  [[nodiscard]] Explanation explain() const {
    for (const Violation& violation : v2::validate(trace, plan)) FAIL_CHECK(violation.message);
    return v2::explain(trace, plan);
  }
  /// The stalls as text: engine, time, and what the library says.
  [[nodiscard]] std::vector<std::string> stalls() const {
    std::vector<std::string> list;
    for (const Stall& stall : explain().stalls) {
      list.push_back(plan.machine.engines[index(stall.engine)].name + ", " + std::to_string(stall.time.count()) +
                     " ns: " + describe(stall, trace, plan));
    }
    return list;
  }
};

using Lines = std::vector<std::string>;

TEST_CASE("v2: what engines, links, capacities and memories do in an iteration") {
  // The iterations of the plan take 97 and 93 ns in turns: v2_profile_test.cpp has them.
  const Explanation found = Rich{}.explain();
  CHECK(found.iteration == nanoseconds{95});
  CHECK(found.examined == nanoseconds{93});
  CHECK(found.compute == nanoseconds{50});
  REQUIRE(found.engines.size() == 2);
  CHECK(found.engines[0].operations == nanoseconds{50});
  CHECK(found.engines[0].again == nanoseconds{10});
  CHECK(found.engines[0].coding == nanoseconds{5});
  CHECK(found.engines[0].copies == nanoseconds{0});
  CHECK(found.engines[0].waits == nanoseconds{28});
  CHECK(found.engines[0].done == nanoseconds{0});
  CHECK(found.engines[1].operations == nanoseconds{45});
  CHECK(found.engines[1].waits == nanoseconds{0});
  CHECK(found.engines[1].done == nanoseconds{48});
  REQUIRE(found.links.size() == 3);
  CHECK(found.links[0].bytes == Bytes{40});
  CHECK(found.links[0].copies == 1);
  CHECK(found.links[0].busy == nanoseconds{42});  // 84 in two iterations
  CHECK(found.links[0].slowed == nanoseconds{2});
  CHECK(found.links[1].copies == 0);
  CHECK(found.links[2].copies == 2);
  REQUIRE(found.capacities.size() == 1);
  CHECK(found.capacities[0].bytes == Bytes{80});
  CHECK(found.capacities[0].full == nanoseconds{80});
  REQUIRE(found.memories.size() == 3);
  CHECK(found.memories[0].peak == Bytes{100});
  CHECK(found.memories[0].in == Bytes{40});
  CHECK(found.memories[0].taken == 6);
  CHECK(found.memories[1].taken == 2);
  CHECK(found.memories[2].out == Bytes{80});
}

TEST_CASE("v2: what comes back by decoding, by running again, in pieces and over links") {
  const Explanation found = Rich{}.explain();
  REQUIRE(found.absences.size() == 5);
  const PlannedAbsence& y = found.absences[0];
  CHECK(y.tensor == TensorId{3});
  CHECK(y.memory == MemoryId{0});
  CHECK(y.time == nanoseconds{30});
  CHECK(y.release == CommandId{7});
  CHECK(y.back == CommandId{10});  // decode
  CHECK(y.last_use == OperationId{1});
  CHECK(y.next_use == OperationId{3});
  CHECK_FALSE(y.next_iteration);
  const PlannedAbsence& x = found.absences[1];
  CHECK(x.tensor == TensorId{2});
  CHECK(x.time == nanoseconds{23});
  CHECK(x.back == CommandId{9});  // run
  const PlannedAbsence& second_piece = found.absences[2];
  CHECK(second_piece.tensor == TensorId{1});
  CHECK(second_piece.piece == 1U);
  CHECK(second_piece.memory == MemoryId{1});
  CHECK(second_piece.time == nanoseconds{20});  // until the first piece is there
  CHECK(second_piece.next_iteration);
  // Those that come back at once.
  CHECK(found.absences[3].time == nanoseconds{0});
  CHECK(found.absences[4].time == nanoseconds{0});
}

TEST_CASE("v2: an operation waits for a copy, and the link and the shared capacity are named") {
  Rich rich;
  CHECK(rich.stalls() == Lines{"gpu0, 28 ns: operation \"first\" waits for \"w0\" over link host-gpu0, which copies "
                               "without a pause for 40 ns until then"});
  // If these two take no time, w1 comes beside w0.
  rich.trace.operations[4].duration = nanoseconds{0};
  rich.trace.operations[3].duration = nanoseconds{0};
  const Explanation found = rich.explain();
  REQUIRE(!found.stalls.empty());
  const Stall* shared = nullptr;
  for (const Stall& stall : found.stalls) {
    if (stall.slowed > nanoseconds{0}) shared = &stall;
  }
  REQUIRE(shared != nullptr);
  CHECK(shared->capacity == CapacityId{0});
  CHECK(describe(*shared, rich.trace, rich.plan).find("because it shares capacity root") != std::string::npos);
}

TEST_CASE("v2: an operation waits for room that a copy makes, through the release and the allocation in between") {
  Rich rich;
  // y goes to the host before its room is given back. Nobody needs it there.
  rich.plan.commands.push_back({});
  Command& out = rich.plan.commands.back();
  out.kind = CommandKind::copy;
  out.tensor = TensorId{3};
  out.link = LinkId{1};
  out.after = {after_operation(OperationId{3})};
  rich.plan.machine.links[1].bytes_per_second = 100'000'000;  // 200 ns
  rich.plan.commands[15].after = {after_command(CommandId{17})};
  const Explanation found = rich.explain();
  REQUIRE(found.stalls.size() >= 1);
  const Stall& longest = found.stalls.front();
  CHECK(longest.step == PlanStep{false, 1});
  CHECK(longest.cause == PlanStep{true, 17});
  CHECK(longest.room == CommandId{15});
  CHECK(describe(longest, rich.trace, rich.plan) ==
        "operation \"second\" waits for the room of \"y\", until \"y\" has gone over link gpu0-host, which copies "
        "without "
        "a pause for 200 ns until then");
}

TEST_CASE("v2: engines wait for each other at the end of iterations") {
  Rich rich;
  rich.trace.operations[4].duration = nanoseconds{200};
  // The weights of gpu0 are there long before.
  const Lines lines = rich.stalls();
  REQUIRE(lines.size() == 1);
  CHECK(lines.front().find("gpu1, 40 ns: operation \"other\" waits for \"w1[1]\" over link host-gpu1") == 0);
  CHECK(rich.explain().engines[0].done == nanoseconds{240 - 65});
}

TEST_CASE("v2: an operation waits for one of another engine with the same memory") {
  Rich rich;
  rich.plan.machine.engines[1].memory = MemoryId{0};
  rich.plan.machine.memories[0].bytes = Bytes{200};
  for (Command& command : rich.plan.commands) {
    if (command.tensor != TensorId{1}) continue;
    command.memory = MemoryId{0};
    if (command.kind == CommandKind::copy) *command.offset += Bytes{100};
  }
  rich.plan.machine.links[2].to = MemoryId{0};
  // "other" reads what "first" writes, and has nothing else to wait for.
  rich.trace.operations[4].reads = {TensorId{2}};
  rich.trace.operations[0].duration = nanoseconds{300};
  rich.plan.trace_digest = digest(rich.trace);
  for (Command& command : rich.plan.commands) {
    if (command.kind == CommandKind::copy && command.tensor == TensorId{1}) command.before_operations.clear();
  }
  rich.plan.commands[12].after = {after_command(CommandId{1})};
  rich.plan.commands[13].after = {after_command(CommandId{2})};
  // x is in gpu0 until "other" has ended.
  rich.plan.commands[14].after.push_back(after_operation(OperationId{4}));
  rich.plan.commands[5].after.push_back(after_operation(OperationId{4}));
  const Explanation found = rich.explain();
  REQUIRE(!found.stalls.empty());
  CHECK(describe(found.stalls.front(), rich.trace, rich.plan) == "operation \"other\" waits for operation \"first\"");
}

TEST_CASE("v2: a plan that takes no time is explained, too") {
  Trace trace;
  trace.tensors = {{"t", Bytes{8}, TensorKind::persistent, 0}};
  trace.operations = {{"o", nanoseconds{0}, {TensorId{0}}, {}, {}}};
  Plan plan;
  plan.trace_digest = digest(trace);
  plan.machine.memories = {{"m", Bytes{8}, Bytes{1}, std::nullopt}};
  plan.machine.engines = {{"e", MemoryId{0}}};
  Place place;
  plan.initial = {place};
  REQUIRE(v2::validate(trace, plan).empty());
  const Explanation found = v2::explain(trace, plan);
  CHECK(found.iteration == nanoseconds{0});
  CHECK(found.stalls.empty());
  CHECK(found.memories[0].kept == 1);
  CHECK(found.memories[0].kept_bytes == Bytes{8});
}

}  // namespace swapmm::v2::explain_test
