// SPDX-License-Identifier: Apache-2.0
// What is told of plans that are written by hand.
#include <doctest/doctest.h>

#include <swapmm/answers/ways/as_version_1.hpp>
#include <swapmm/answers/ways/ways.hpp>
#include <swapmm/plan/v2/ways.hpp>

#include "support/v2/by_hand.hpp"

namespace swapmm::v2::figures_test {
using namespace swapmm::v2::hand;

TEST_CASE("v2: a capacity is full although the shares of three copies are rounded down") {
  Trace trace;
  trace.operations = {operation("only", 1000, {})};
  std::vector<Place> initial;
  std::vector<Command> commands;
  Machine machine = device(1000);
  machine.capacities = {{"root", byte_per_ns}};
  machine.links.clear();
  for (std::uint32_t t = 0; t < 3; ++t) {
    trace.tensors.push_back(tensor("t", 100, TensorKind::persistent));
    initial.push_back(place(t, 100 * t));
    commands.push_back(copy(t, t, {op(-1)}));
    machine.links.push_back(link("out" + std::to_string(t), gpu, host));
    machine.links.back().capacities = {CapacityId{0}};
  }
  const Plan plan = plan_of(trace, machine, initial, commands);
  REQUIRE(told(trace, plan) == "");
  const Explanation found = explain(trace, plan);
  // 333,333,333 bytes per second for each: one byte per second of the capacity is left over.
  CHECK(found.capacities[0].full == std::chrono::nanoseconds{301});
  CHECK(found.links[0].slowed == std::chrono::nanoseconds{201});
}

TEST_CASE("v2: of two capacities that limit a copy one after the other, the stall names that of the longer time") {
  for (const bool swapped : {false, true}) {
    CAPTURE(swapped);
    Trace trace;
    trace.operations = {operation("only", 10, {})};
    Machine machine = device(1000);
    machine.capacities = {{"first", byte_per_ns}, {"second", byte_per_ns}};
    machine.links = {link("x", gpu, host), link("y", gpu, host), link("z", gpu, host)};
    machine.links[0].capacities = {CapacityId{0}, CapacityId{1}};
    machine.links[1].capacities = {CapacityId{swapped ? 1U : 0U}};
    machine.links[2].capacities = {CapacityId{swapped ? 0U : 1U}};
    std::vector<Place> initial;
    std::uint64_t at = 0;
    for (const std::uint64_t bytes : {100U, 10U, 50U}) {
      initial.push_back(place(static_cast<std::uint32_t>(trace.tensors.size()), at));
      trace.tensors.push_back(tensor("t", bytes, TensorKind::persistent));
      at += bytes;
    }
    // y shares with x for 20 ns, then z for 100; the last 40 bytes of x go alone.
    const Plan plan =
        plan_of(trace, machine, initial, {copy(0, 0, {op(-1)}, {0}), copy(1, 1, {op(-1)}), copy(2, 2, {cmd(1)}, {1})});
    REQUIRE(told(trace, plan) == "");
    const Explanation found = explain(trace, plan);
    REQUIRE(found.stalls.size() == 1);
    CHECK(found.stalls[0].time == std::chrono::nanoseconds{160});
    CHECK(found.stalls[0].slowed == std::chrono::nanoseconds{60});
    CHECK(found.stalls[0].capacity == CapacityId{swapped ? 0U : 1U});
    CHECK(found.capacities[swapped ? 0 : 1].full == std::chrono::nanoseconds{140});
  }
}

TEST_CASE("v2: the places that a plan keeps between iterations have the sizes of their pieces") {
  const Trace trace = unused_constants(1);  // 10 bytes
  Plan plan = plan_of(trace, device(100), {}, {});
  plan.pieces = {{TensorId{0}, {Bytes{4}}}};
  plan.initial = {{TensorId{0}, 1U, FormId::plain, gpu, Bytes{0}, true}};
  REQUIRE(told(trace, plan) == "");
  const Explanation found = explain(trace, plan);
  CHECK(found.memories[0].kept == 1);
  CHECK(found.memories[0].kept_bytes == Bytes{6});
}

TEST_CASE(
    "v2: what is decoded into a place of its own takes the tensor's bytes there, and what is encoded its form's") {
  Trace trace;
  trace.tensors = {tensor("w", 30, TensorKind::persistent)};
  trace.operations = {operation("only", 10, {0})};
  trace.forms = {{TensorId{0}, "z", Bytes{12}, Bytes{6}, std::chrono::nanoseconds{1}, std::chrono::nanoseconds{2}}};
  const auto coding = [](CommandKind kind, Bytes offset, Waits after, BeforeAll before) {
    Command command;
    command.kind = kind;
    command.tensor = TensorId{0};
    command.form = FormId{1};
    command.engine = EngineId{0};
    command.offset = offset;
    command.after = std::move(after);
    command.before_operations = std::move(before);
    return command;
  };
  Plan plan = plan_of(trace, device(100), {}, {coding(CommandKind::decode, Bytes{0}, {}, {}), give_back(0, {op(0)})});
  plan.forms = {"z"};
  plan.commands[0].position = 0;
  plan.initial = {{TensorId{0}, std::nullopt, FormId{1}, gpu, Bytes{50}, true}};
  REQUIRE(told(trace, plan) == "");
  CHECK(simulate(trace, plan).peaks == std::vector{Bytes{42}, Bytes{0}});

  Plan other = plan_of(trace, device(100), {place(0, 0)}, {coding(CommandKind::encode, Bytes{50}, {}, {})});
  other.forms = {"z"};
  Command away = give_back(0, {cmd(0)});
  away.form = FormId{1};
  other.commands.push_back(away);
  other.commands[0].position = 1;
  REQUIRE(told(trace, other) == "");
  CHECK(simulate(trace, other).peaks == std::vector{Bytes{42}, Bytes{0}});
}

TEST_CASE(
    "v2: in version 1, the first of several operations that wait for a command waits for it, in any order of the "
    "list") {
  Trace trace;
  trace.tensors = {tensor("w", 8, TensorKind::persistent)};
  trace.operations = {operation("a", 10, {0}), operation("b", 10, {0}), operation("c", 10, {0})};
  const swapmm::Plan old =
      test::plan(trace, test::machine(100), {}, {test::swap_in(0, 0, {op(-1)}, 0), test::release(0, {op(2)})});
  REQUIRE(swapmm::validate(trace, old).empty());
  Plan plan = from_version_1(old);
  for (const BeforeAll& list : {BeforeAll{0}, BeforeAll{0, 1}, BeforeAll{2, 0}, BeforeAll{0, 2, 1}}) {
    plan.commands[0].before_operations = list;
    CAPTURE(list.size());
    const Result<PlanWithWays> made = to_ways(trace, plan);
    REQUIRE(made);
    CHECK(made->plan.commands[0].before_operation == 0U);
  }
  plan.commands[0].before_operations = {6};
  const Result<PlanWithWays> made = to_ways(trace, plan);
  REQUIRE(!made);
  CHECK(made.problem().message.ends_with(": an operation that is not there"));
  plan.commands[0].before_operations = {5};
  CHECK(to_ways(trace, plan));
}

namespace {
Command coding(CommandKind kind, std::optional<Bytes> offset, std::uint32_t position, Waits after = {}) {
  Command command;
  command.kind = kind;
  command.tensor = TensorId{0};
  command.form = FormId{1};
  command.engine = EngineId{0};
  command.offset = offset;
  command.position = position;
  command.after = std::move(after);
  return command;
}
Trace encoded_trace() {
  Trace trace;
  trace.tensors = {tensor("w", 30, TensorKind::persistent)};
  trace.operations = {operation("only", 10, {0})};
  trace.forms = {{TensorId{0}, "z", Bytes{12}, Bytes{6}, std::chrono::nanoseconds{1}, std::chrono::nanoseconds{2}}};
  return trace;
}
}  // namespace

TEST_CASE(
    "what encoding saves is told: the bytes of the values, what their copies are expected to move, and the time") {
  Command out = copy(0, 1, {});
  out.form = FormId{1};
  Plan plan = plan_of(encoded_trace(), from_version_1(test::machine(100)), {},
                      {coding(CommandKind::encode, {}, 1), out, copy(0, 0, {}), coding(CommandKind::decode, {}, 0)});
  plan.forms = {"z"};
  const answers::WaysUsed used = answers::ways_used(encoded_trace(), plan);
  CHECK(used.encoded_copies == 1);
  CHECK(used.plain_bytes == Bytes{30});
  CHECK(used.encoded_bytes == Bytes{6});
  CHECK(used.decoded == 1);
  CHECK(used.coding_time == std::chrono::nanoseconds{3});
}

TEST_CASE("a plan that runs an operation again, told as one of version 1, promises the computation without it") {
  Trace trace;
  trace.tensors = {tensor("w", 10, TensorKind::persistent), tensor("x", 10, TensorKind::transient)};
  trace.operations = {operation("a", 100, {0}, {1}), operation("b", 10, {0}), operation("c", 10, {1})};
  trace.operations[0].replayable = true;
  Command again;
  again.kind = CommandKind::run;
  again.operation = OperationId{0};
  again.position = 2;
  again.after = {cmd(2)};
  const Plan plan =
      plan_of(trace, from_version_1(test::machine(100)), {place(0, 0)},
              {take(1, 10, {op(-1)}, {0}), give_back(1, {op(0)}), take(1, 10, {op(1)}), again, give_back(1, {op(2)})});
  REQUIRE(told(trace, plan) == "");
  const auto made = answers::as_version_1(trace, plan);
  REQUIRE(made);
  REQUIRE(made->trace.operations.size() == 4);
  CHECK(made->trace.operations[2].name == "a (again)");
  CHECK(made->plan.predicted.compute == std::chrono::nanoseconds{120});
  CHECK(made->used.again == 1);
  CHECK(made->used.again_time == std::chrono::nanoseconds{100});
  CHECK(made->used.again_bytes == Bytes{10});
}

}  // namespace swapmm::v2::figures_test
