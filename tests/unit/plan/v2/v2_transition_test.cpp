// SPDX-License-Identifier: Apache-2.0
// Ways from one plan to another, and those that there are not.
#include <doctest/doctest.h>

#include "support/v2/by_hand.hpp"

namespace swapmm::v2::transition_test {
using namespace swapmm::v2::hand;

namespace {
struct Move {
  Trace trace = [] {
    Trace one;
    one.tensors = {tensor("w", 8, TensorKind::persistent)};
    one.operations = {operation("only", 10, {0})};
    return one;
  }();
  Plan from = plan_of(trace, device(32, Bytes{16}), {place(0, 0)}, {});
  Plan to = plan_of(trace, device(32, Bytes{16}), {place(0, 16)}, {});
  [[nodiscard]] std::string told(std::vector<Command> commands) const {
    Transition transition;
    transition.commands = std::move(commands);
    return hand::told(check_transition(trace, from, to, transition));
  }
};
}  // namespace

TEST_CASE("v2: a step of a transition may neither cross an arena nor leave its memory by a byte") {
  const Move move;
  const Command gone = give_back(0, {});
  const auto come = [](std::uint64_t offset) { return copy(0, 0, {}, {}, Bytes{offset}); };
  CHECK(move.told({gone, come(16)}).empty());
  CHECK(move.told({gone, come(8), gone, come(16)}).empty());
  CHECK(move.told({gone, come(9), gone, come(16)}) == "3: step 1: the place crosses a border\n");
  CHECK(move.told({gone, come(24), gone, come(16)}).empty());
  CHECK(move.told({gone, come(25), gone, come(16)}) ==
        "3: step 1: the place is not within its memory\n3: step 1: the place crosses a border\n");
}

TEST_CASE("v2: a transition that makes a place and brings no value into it is refused") {
  const Move move;
  CHECK(move.told({give_back(0, {}), take(0, 16, {})}) ==
        "4: step 2: in the end, the newest value of tensor 0 in memory gpu is missing\n");
}

TEST_CASE("v2: a transition counts the bytes of all copies both ways, and whole nanoseconds of each") {
  Trace trace;
  trace.tensors = {tensor("a", 10, TensorKind::persistent), tensor("b", 10, TensorKind::persistent)};
  trace.operations = {operation("only", 10, {}, {}, {0}), operation("other", 10, {}, {}, {1})};
  Machine machine = device(20);
  machine.links[0].bytes_per_second = 3 * byte_per_ns;  // in: 10/3 ns
  machine.links[1].bytes_per_second = 4 * byte_per_ns;  // out: 10/4 ns
  machine.links[0].latency = std::chrono::nanoseconds{100};
  const auto with = [&](std::uint64_t a, std::uint64_t b) {
    Plan plan = plan_of(trace, machine, {place(0, a), place(1, b)}, {});
    for (const std::uint32_t t : {0U, 1U}) {
      plan.initial.push_back({TensorId{t}, std::nullopt, FormId::plain, host, Bytes{0}, false});
    }
    REQUIRE(told(trace, plan) == "");
    return plan;
  };
  const Plan from = with(0, 10);
  const Plan to = with(10, 0);
  const Result<Transition> made = make_transition(trace, from, to);
  REQUIRE(made);
  REQUIRE(told(check_transition(trace, from, to, *made)) == "");
  std::size_t in = 0;
  std::size_t out = 0;
  for (const Command& command : made->commands) {
    if (command.kind == CommandKind::copy) ++(command.link == LinkId{0} ? in : out);
  }
  CHECK(in == 2);
  CHECK(out == 2);
  CHECK(made->moved == Bytes{40});
  CHECK(made->time == std::chrono::nanoseconds{2 * (100 + 4) + 2 * 3});
}

namespace {
std::string refusal(const Result<Transition>& made) { return made ? "" : made.problem().message; }
}  // namespace

TEST_CASE("v2: there is no way to a plan on whose machine a memory has a limit, and had none, or the other way round") {
  Trace trace;
  trace.tensors = {tensor("w", 8, TensorKind::persistent)};
  trace.operations = {operation("only", 10, {0})};
  const Plan wide = plan_of(trace, device(32), {place(0, 0)}, {});
  Plan narrow = wide;
  narrow.machine.memories[1].bytes = Bytes{100};
  narrow.initial.push_back({TensorId{0}, std::nullopt, FormId::plain, host, Bytes{0}, true});
  REQUIRE(told(trace, wide) == "");
  REQUIRE(told(trace, narrow) == "");
  CHECK(refusal(make_transition(trace, wide, wide)) == "");
  CHECK(refusal(make_transition(trace, narrow, narrow)) == "");
  CHECK(refusal(make_transition(trace, wide, narrow)) == "memory host has a limit in one of the plans only");
  CHECK(refusal(make_transition(trace, narrow, wide)) == "memory host has a limit in one of the plans only");
}

TEST_CASE("v2: there is no way from a plan by which the host waits for a value that the next iteration copies") {
  Trace trace;
  trace.tensors = {tensor("w", 8, TensorKind::persistent)};
  trace.operations = {operation("only", 10, {}, {}, {0}), operation("last", 10, {})};
  trace.host_reads = {{TensorId{0}, OperationId{0}}};
  const auto with = [&](Wait before) {
    Plan plan = plan_of(trace, device(32), {place(0, 0)}, {copy(0, 1, {before}, {before.index < 0 ? 0U : 2U})});
    plan.initial.push_back({TensorId{0}, std::nullopt, FormId::plain, host, Bytes{0}, false});
    REQUIRE(told(trace, plan) == "");
    return plan;
  };
  const Plan at_once = with(op(0));
  const Plan later = with(op(-1));
  CHECK(refusal(make_transition(trace, at_once, later)) == "");
  CHECK(refusal(make_transition(trace, later, at_once)) == "the host still waits for a value of tensor 0");
}

TEST_CASE("v2: a plan that stays when a memory changes keeps its bound") {
  Trace trace;
  trace.tensors = {tensor("w", 8, TensorKind::persistent)};
  trace.operations = {operation("only", 10, {0})};
  Plan now = plan_of(trace, device(32), {place(0, 0)}, {});
  now.predicted.lower_bound = std::chrono::nanoseconds{7};
  const Result<Replan> replan = plan_for_other_memory("belady", trace, now, device(16));
  REQUIRE(replan);
  CHECK(replan->transition.commands.empty());
  CHECK(replan->plan.machine.memories[0].bytes == Bytes{16});
  CHECK(replan->plan.predicted.lower_bound == std::chrono::nanoseconds{7});
  CHECK(replan->plan.predicted.iteration == std::chrono::nanoseconds{10});
  CHECK(replan->plan.predicted.peaks == std::vector{Bytes{8}, Bytes{0}});
}

TEST_CASE("v2: a machine without its first memory has the same engines, links and host") {
  Machine machine = device(32);
  machine.memories.insert(machine.memories.begin(), {"neighbour", Bytes{10}, Bytes{1}, std::nullopt});
  machine.engines[0].memory = MemoryId{1};
  machine.host = MemoryId{2};
  machine.links = {link("host-gpu", MemoryId{2}, MemoryId{1}), link("gpu-neighbour", MemoryId{1}, MemoryId{0}),
                   link("neighbour-gpu", MemoryId{0}, MemoryId{1}), link("gpu-host", MemoryId{1}, MemoryId{2})};
  REQUIRE(check_machine(machine));
  Machine wanted = device(32);
  wanted.links = {link("host-gpu", host, gpu), link("gpu-host", gpu, host)};
  CHECK(without_memory(machine, MemoryId{0}) == wanted);
}

}  // namespace swapmm::v2::transition_test
