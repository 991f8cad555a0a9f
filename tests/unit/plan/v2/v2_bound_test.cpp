// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/plan/bound.hpp>
#include <swapmm/plan/v2/bound.hpp>
#include <swapmm/plan/v2/planners.hpp>
#include <swapmm/plan/v2/schedule/waits.hpp>
#include <swapmm/plan/v2/simulate.hpp>
#include <swapmm/plan/v2/validate.hpp>

#include "support/plain_traces.hpp"

namespace swapmm::v2::bound_test {

using std::chrono::nanoseconds;
using test::machine_of;
using test::operation;
using test::tensor;

constexpr std::uint64_t byte_per_ns = 1'000'000'000;

/// Four weights of 100 bytes, used one after the other, 5 ns each.
Trace four_weights() { return test::weights_in_turn(4, 100, 5); }

Machine with_near(std::uint64_t device, std::vector<std::pair<std::uint64_t, std::uint64_t>> near) {
  Machine machine = from_version_1(machine_of(device));
  for (const auto& [bytes, rate] : near) {
    const auto memory = id_at<MemoryId>(machine.memories.size());
    const std::string name = "near" + std::to_string(machine.memories.size());
    machine.memories.push_back({name, Bytes{bytes}, Bytes{1}, std::nullopt});
    machine.links.push_back({name + ".in", memory, MemoryId{0}, rate, {}, std::nullopt, {}});
    machine.links.push_back({name + ".out", MemoryId{0}, memory, rate, {}, std::nullopt, {}});
  }
  return machine;
}

std::int64_t bound(const Machine& machine) { return v2::lower_bound(four_weights(), machine).value().count(); }
std::int64_t bound_of_device(std::uint64_t bytes) {
  return swapmm::lower_bound(four_weights(), machine_of(bytes)).value().count();
}

TEST_CASE("v2: a near memory helps no more than a device that is larger by its size") {
  // The near memory holds one of four, and the device one or two. One or two come from the host, at a byte per ns.
  const std::int64_t two = bound(with_near(100, {{100, 1000 * byte_per_ns}}));
  const std::int64_t three = bound(with_near(200, {{100, 1000 * byte_per_ns}}));
  CHECK(two >= bound_of_device(200) - 50);  // copies on several links share their rounded nanoseconds
  CHECK(two > 150);
  CHECK(three > 80);
  CHECK(two > three);
  // With room for all of them, only the speed of all links counts.
  CHECK(bound(with_near(100, {{300, 1000 * byte_per_ns}})) == 20);
  CHECK(bound(with_near(100, {{400, 1000 * byte_per_ns}})) == 20);
}

TEST_CASE("v2: memories without limit, and the host, hold everything") {
  Machine machine = with_near(100, {{100, 1000 * byte_per_ns}});
  machine.memories[2].bytes.reset();
  CHECK(bound(machine) == 20);
}

TEST_CASE("v2: of several near memories, each set of the fastest ones gives a bound") {
  // Both hold one: one comes from the slow memory, and one from the host.
  const Machine one = with_near(100, {{100, 1000 * byte_per_ns}});
  const Machine two = with_near(100, {{100, 1000 * byte_per_ns}, {100, byte_per_ns / 100}});
  CHECK(bound(two) <= bound(one));
  CHECK(bound(two) > 80);
  // The order in the machine does not matter.
  const Machine other = with_near(100, {{100, byte_per_ns / 100}, {100, 1000 * byte_per_ns}});
  CHECK(bound(two) == bound(other));
  // A slow near memory counts for little: without it, two come from the host.
  CHECK(bound(two) > bound(with_near(100, {{200, 1000 * byte_per_ns}})));
}

TEST_CASE(
    "what the host reads may wait in a near memory while the tensor has its next value: the bound allows for it") {
  using namespace std::chrono_literals;
  Trace trace;
  trace.name = "waits";
  trace.tensors = {{"t", Bytes{100}, TensorKind::transient, 0}};
  trace.operations = {
      {"first", 1ns, {}, {TensorId{0}}, {}}, {"second", 1ns, {}, {TensorId{0}}, {}}, {"long", 1000ns, {}, {}, {}}};
  trace.host_reads = {{TensorId{0}, OperationId{0}}};
  Machine machine;
  machine.memories = {{"gpu", Bytes{100}, Bytes{1}, std::nullopt},
                      {"host", std::nullopt, Bytes{1}, std::nullopt},
                      {"near", Bytes{100}, Bytes{1}, std::nullopt}};
  machine.engines = {{"compute", MemoryId{0}}};
  machine.host = MemoryId{1};
  const auto link = [&](const char* name, std::uint32_t from, std::uint32_t to, std::uint64_t rate) {
    machine.links.push_back({name, MemoryId{from}, MemoryId{to}, rate, 0ns, std::nullopt, {}});
  };
  link("to.near", 0, 2, 100'000'000'000);
  link("from.near", 2, 0, 100'000'000'000);
  link("to.host", 0, 1, 1'000'000'000);
  link("from.host", 1, 0, 1'000'000'000);
  planning::SerialPlan serial;
  const auto add = [&](std::uint32_t before, CommandKind kind, std::uint32_t memory_or_link, bool has_place) {
    Command command;
    command.kind = kind;
    if (kind == CommandKind::copy) {
      command.link = LinkId{memory_or_link};
    } else {
      command.memory = MemoryId{memory_or_link};
    }
    if (has_place) command.offset = Bytes{0};
    serial.commands.push_back(command);
    serial.before.push_back(before);
  };
  add(0, CommandKind::allocate, 0, true);
  add(1, CommandKind::copy, 0, true);   // the first value goes to the near memory
  add(2, CommandKind::copy, 1, false);  // and comes back where the second one was, which is dead
  add(2, CommandKind::release, 2, false);
  add(2, CommandKind::copy, 2, false);  // from where it goes to the host during the long operation
  add(3, CommandKind::release, 0, false);
  planning::write_waits(trace, machine, serial);
  Plan plan;
  plan.trace_digest = digest(trace);
  plan.machine = machine;
  plan.initial = serial.initial;
  plan.commands = serial.commands;
  const auto violations = validate(trace, plan);
  if (!violations.empty()) MESSAGE(violations.front().message);
  const auto bound = lower_bound(trace, machine);
  REQUIRE(bound);
  if (violations.empty()) CHECK(*bound <= simulate(trace, plan).iteration);
  CHECK(*bound < 1050ns);
}

TEST_CASE("v2: sizes that add up to more than a machine of version 1 can have are no error") {
  const std::uint64_t huge = (std::uint64_t{1} << 62U) - 1;
  CHECK(bound(with_near(100, {{huge, byte_per_ns}, {huge, byte_per_ns}})) >= 20);
}

/// Tensors that operations of 5 ns use one after the other: there is a plan of `known` ns.
void check_links(const Trace& trace, std::uint64_t device, std::vector<Link> links, std::int64_t known) {
  Machine machine;
  machine.memories = {{"gpu", Bytes{device}, Bytes{1}, std::nullopt}, {"host", std::nullopt, Bytes{1}, std::nullopt}};
  machine.host = MemoryId{1};
  machine.engines = {{"compute", MemoryId{0}}, {"copies", std::nullopt}};
  machine.capacities = {{"bus", byte_per_ns}};
  machine.links = std::move(links);
  const auto plan = v2::make_plan("best", trace, machine);
  REQUIRE(plan);
  CHECK(plan->predicted.iteration.count() <= known);
  CHECK(v2::lower_bound(trace, machine).value().count() <= known);
}

TEST_CASE("v2: copies may take the faster one of two links with other latencies, engines and capacities") {
  constexpr MemoryId gpu{0};
  constexpr MemoryId host{1};
  constexpr EngineId copies{1};
  const Trace two = test::weights_in_turn(2, 100, 5);
  const Link in{"in", host, gpu, byte_per_ns, nanoseconds{0}, std::nullopt, {}};
  const Link out{"out", gpu, host, byte_per_ns, nanoseconds{0}, std::nullopt, {}};
  check_links(two, 100, {{"late", host, gpu, byte_per_ns, nanoseconds{1000}, std::nullopt, {}}, in, out}, 210);

  // The slow way in shares an engine with the way out, and the fast one does not.
  Trace four = test::weights_in_turn(4, 100, 5);
  for (TraceOperation& each : four.operations) each.updates = std::exchange(each.reads, {});
  check_links(four, 200,
              {{"slow", host, gpu, byte_per_ns / 10, nanoseconds{0}, copies, {}},
               in,
               {"out", gpu, host, byte_per_ns, nanoseconds{0}, copies, {}}},
              410);

  // One engine: the faster link is limited by a capacity that the other one does not use.
  check_links(two, 100,
              {{"limited", host, gpu, 10 * byte_per_ns, nanoseconds{0}, copies, {CapacityId{0}}},
               {"free", host, gpu, 5 * byte_per_ns, nanoseconds{0}, copies, {}},
               out},
              50);
}

TEST_CASE("v2: an input that the host gives when another engine's operation ends counts for no engine alone") {
  Trace trace;
  trace.name = "input";
  trace.engines = {"first", "second"};
  trace.tensors = {tensor(100, TensorKind::input, 2)};
  trace.operations = {operation(1000, {}), operation(1, {}), operation(1000, {TensorId{0}})};
  trace.operations[0].engine = trace.operations[2].engine = 0;
  trace.operations[1].engine = 1;
  Machine machine = from_version_1(machine_of(1000));
  machine.memories.push_back({"other", Bytes{1000}, Bytes{1}, std::nullopt});
  machine.engines = {{"first", MemoryId{0}}, {"second", MemoryId{2}}};
  const auto bound = v2::lower_bound(trace, machine);
  REQUIRE(bound);
  CHECK(bound->count() == 2000);
}

}  // namespace swapmm::v2::bound_test
