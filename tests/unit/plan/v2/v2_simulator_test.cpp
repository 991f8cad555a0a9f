// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/plan/planners.hpp>
#include <swapmm/plan/simulate.hpp>
#include <swapmm/plan/v2/simulate.hpp>
#include <swapmm/plan/v2/validate.hpp>

#include "support/plan_text.hpp"
#include "support/random_trace.hpp"
#include "support/seeds.hpp"

namespace swapmm::v2::simulator_test {

using namespace swapmm::test;

using Times = std::vector<std::pair<std::int64_t, std::int64_t>>;
using Ends = std::vector<std::int64_t>;
using BeforeAll = std::vector<std::uint32_t>;

constexpr std::uint64_t byte_per_ns = 1'000'000'000;
constexpr auto gpu = MemoryId{0};
constexpr auto host = MemoryId{1};
constexpr auto gpu2 = MemoryId{2};

Times times(const std::vector<Span>& spans) {
  Times result;
  for (const Span& span : spans) result.emplace_back(span.start.count(), span.end.count());
  return result;
}

Ends ends(const Trace& trace, const Plan& plan, std::size_t iterations) {
  Ends result;
  for (const auto end : v2::iteration_ends(trace, plan, iterations)) result.push_back(end.count());
  return result;
}

Simulation run(const Trace& trace, const Plan& plan) {
  for (const Violation& violation : v2::validate(trace, plan)) FAIL_CHECK(violation.message);
  return v2::simulate(trace, plan);
}

/// Copies from the device to the host, with an engine of its own.
Link link(std::string name, std::uint64_t bytes_per_second = byte_per_ns, std::int64_t latency = 0) {
  return {std::move(name), gpu, host, bytes_per_second, std::chrono::nanoseconds{latency}, std::nullopt, {}};
}
/// The same through the machine's first capacity.
Link sharing(std::string name, std::uint64_t bytes_per_second = byte_per_ns, std::int64_t latency = 0) {
  Link result = link(std::move(name), bytes_per_second, latency);
  result.capacities = {CapacityId{0}};
  return result;
}

/// A device with 1,000 bytes, the host, and an engine on the device.
Machine device(std::vector<Link> links = {}, std::vector<Capacity> capacities = {}) {
  Machine machine;
  machine.name = "test";
  machine.memories = {{"gpu", Bytes{1000}, Bytes{1}, std::nullopt}, {"host", std::nullopt, Bytes{1}, std::nullopt}};
  machine.engines = {{"gpu", gpu}};
  machine.capacities = std::move(capacities);
  machine.links = std::move(links);
  machine.host = host;
  return machine;
}

Command copy(std::uint32_t tensor, std::uint32_t on, Waits after, BeforeAll before = {}) {
  Command command;
  command.kind = CommandKind::copy;
  command.tensor = TensorId{tensor};
  command.link = LinkId{on};
  command.after = std::move(after);
  command.before_operations = std::move(before);
  return command;
}
Command copy_to(std::uint64_t offset, std::uint32_t tensor, std::uint32_t on, Waits after, BeforeAll before = {}) {
  Command command = copy(tensor, on, std::move(after), std::move(before));
  command.offset = Bytes{offset};
  return command;
}
Command take(MemoryId memory, std::uint32_t tensor, std::uint64_t offset, Waits after, BeforeAll before = {}) {
  Command command;
  command.kind = CommandKind::allocate;
  command.tensor = TensorId{tensor};
  command.memory = memory;
  command.offset = Bytes{offset};
  command.after = std::move(after);
  command.before_operations = std::move(before);
  return command;
}
Command give_back(MemoryId memory, std::uint32_t tensor, Waits after) {
  Command command;
  command.kind = CommandKind::release;
  command.tensor = TensorId{tensor};
  command.memory = memory;
  command.after = std::move(after);
  return command;
}
Command run_again(std::uint32_t operation, Before position) {
  Command command;
  command.kind = CommandKind::run;
  command.operation = OperationId{operation};
  command.position = position;
  return command;
}
/// Of tensor 0, in the plan's first form, on the first engine.
Command coding(CommandKind kind, Before position) {
  Command command;
  command.kind = kind;
  command.tensor = TensorId{0};
  command.form = FormId{1};
  command.engine = EngineId{0};
  command.position = position;
  return command;
}

Place place(std::uint32_t tensor, std::uint64_t offset, MemoryId memory = gpu) {
  return {TensorId{tensor}, std::nullopt, FormId::plain, memory, Bytes{offset}, true};
}

Plan plan_of(const Trace& trace, Machine machine, std::vector<Place> initial, std::vector<Command> commands) {
  Plan plan;
  plan.trace_digest = digest(trace);
  plan.planner = "by hand";
  plan.machine = std::move(machine);
  plan.initial = std::move(initial);
  plan.commands = std::move(commands);
  return plan;
}

/// Constants of these sizes, which no operation uses, and operations that take so long.
Trace constants(const std::vector<std::uint64_t>& sizes, const std::vector<std::int64_t>& durations) {
  Trace trace;
  for (const std::uint64_t size : sizes) trace.tensors.push_back(tensor("", size, TensorKind::persistent));
  for (const std::int64_t duration : durations) trace.operations.push_back(operation("", duration, {}));
  return trace;
}

/// All constants are on the device, one after the other.
Plan copying(const Trace& trace, Machine machine, std::vector<Command> commands) {
  std::vector<Place> initial;
  std::uint64_t offset = 0;
  for (std::uint32_t t = 0; t < trace.tensors.size(); ++t) {
    initial.push_back(place(t, offset));
    offset += trace.tensors[t].bytes.value;
  }
  return plan_of(trace, std::move(machine), std::move(initial), std::move(commands));
}

/// Operations with such durations on these engines, in turn.
Trace on_engines(Trace trace, std::vector<std::string> names, const std::vector<std::uint32_t>& engines) {
  trace.engines = std::move(names);
  for (std::size_t i = 0; i < engines.size(); ++i) trace.operations[i].engine = engines[i];
  return trace;
}

TEST_CASE("v2: an operation waits for a copy, and the copy for an operation") {
  const Trace trace = constants({30}, {10, 20});
  const Plan plan = copying(trace, device({link("out", byte_per_ns, 5)}), {copy(0, 0, {op(0)}, {1})});
  const Simulation simulation = run(trace, plan);
  CHECK(simulation.iteration.count() == 65);
  CHECK(simulation.compute.count() == 30);
  CHECK(simulation.links == std::vector{Bytes{30}});
  CHECK(simulation.peaks == std::vector{Bytes{30}, Bytes{0}});
  CHECK(times(simulation.operations) == Times{{0, 10}, {45, 65}});
  CHECK(times(simulation.commands) == Times{{10, 45}});
  CHECK(ends(trace, plan, 3) == Ends{65, 130, 195});
}

TEST_CASE("v2: two links on one engine copy one after the other, in the order of the commands") {
  const Trace trace = constants({40, 40}, {10, 10});
  Machine machine = device({link("a"), link("b")});
  const std::vector<Command> commands = {copy(1, 1, {op(0)}, {1}), copy(0, 0, {op(0)}, {1})};
  CHECK(times(run(trace, copying(trace, machine, commands)).commands) == Times{{10, 50}, {10, 50}});
  machine.engines.push_back({"copies", std::nullopt});
  for (Link& link : machine.links) link.engine = EngineId{1};
  const Simulation simulation = run(trace, copying(trace, machine, commands));
  CHECK(simulation.iteration.count() == 100);
  CHECK(times(simulation.commands) == Times{{10, 50}, {50, 90}});
}

TEST_CASE("v2: the position puts a copy in the order of its engine") {
  const Trace trace = constants({40, 40}, {10, 10});
  Machine machine = device({link("a"), link("b")});
  machine.engines.push_back({"copies", std::nullopt});
  for (Link& link : machine.links) link.engine = EngineId{1};
  std::vector<Command> commands = {copy(1, 1, {op(0)}, {1}), copy(0, 0, {op(0)}, {1})};
  commands[1].position = 1;
  CHECK(times(run(trace, copying(trace, machine, commands)).commands) == Times{{50, 90}, {10, 50}});
}

TEST_CASE("v2: copies share a capacity, and the one that is left gets all of it") {
  const Trace trace = constants({30, 50}, {10, 10});
  const Machine machine = device({sharing("a"), sharing("b")}, {{"root", byte_per_ns}});
  const Plan plan = copying(trace, machine, {copy(0, 0, {op(0)}, {1}), copy(1, 1, {op(0)}, {1})});
  CHECK(times(run(trace, plan).commands) == Times{{10, 70}, {10, 90}});
}

TEST_CASE("v2: a copy is slower from the time at which another one begins") {
  const Trace trace = constants({50, 10}, {10, 20, 10});
  const Machine machine = device({sharing("a"), sharing("b")}, {{"root", byte_per_ns}});
  const Plan plan = copying(trace, machine, {copy(0, 0, {op(0)}, {2}), copy(1, 1, {op(1)}, {2})});
  // The first has copied 20 bytes when the second begins, and 10 more when it ends.
  const Simulation simulation = run(trace, plan);
  CHECK(times(simulation.commands) == Times{{10, 70}, {30, 50}});
  CHECK(simulation.iteration.count() == 80);
}

TEST_CASE("v2: what a slow link leaves of its share goes to the others") {
  const Trace trace = constants({40, 50, 100}, {10, 10});
  const Machine machine =
      device({sharing("slow", byte_per_ns / 5), sharing("a"), sharing("b")}, {{"root", byte_per_ns / 5 * 6}});
  const Plan plan =
      copying(trace, machine, {copy(0, 0, {op(0)}, {1}), copy(1, 1, {op(0)}, {1}), copy(2, 2, {op(0)}, {1})});
  // Equal shares are 0.4 bytes per nanosecond. The slow one takes 0.2, so that 0.5 are there for each other one,
  // then 1.
  CHECK(times(run(trace, plan).commands) == Times{{10, 210}, {10, 110}, {10, 160}});
}

TEST_CASE("v2: fractions of a byte are kept when rates change, and a copy ends at a whole nanosecond") {
  const Trace trace = constants({1, 2}, {10, 10});
  const Machine machine = device({sharing("a"), sharing("b")}, {{"root", byte_per_ns / 10 * 6}});
  const Plan plan = copying(trace, machine, {copy(0, 0, {op(0)}, {1}), copy(1, 1, {op(0)}, {1})});
  // 1 byte at 0.3: 4. The other one has 0.8 bytes left then, at 0.6: 2.
  CHECK(times(run(trace, plan).commands) == Times{{10, 14}, {10, 16}});
}

TEST_CASE("v2: a copy uses no capacity during its latency") {
  const Trace trace = constants({30, 30}, {10, 10});
  const Machine machine = device({sharing("a"), sharing("late", byte_per_ns, 20)}, {{"root", byte_per_ns}});
  const Plan plan = copying(trace, machine, {copy(0, 0, {op(0)}, {1}), copy(1, 1, {op(0)}, {1})});
  CHECK(times(run(trace, plan).commands) == Times{{10, 50}, {10, 70}});
}

TEST_CASE("v2: a copy of 0 bytes takes the latency, and slows nothing down") {
  const Trace trace = constants({0, 0, 30}, {10, 10});
  const Machine machine =
      device({sharing("a"), sharing("late", byte_per_ns, 7), sharing("b")}, {{"root", byte_per_ns}});
  const Plan plan =
      copying(trace, machine, {copy(0, 0, {op(0)}, {1}), copy(1, 1, {op(0)}, {1}), copy(2, 2, {op(0)}, {1})});
  CHECK(times(run(trace, plan).commands) == Times{{10, 10}, {10, 17}, {10, 40}});
}

TEST_CASE("v2: an engine runs operations again, encodes and decodes at their positions") {
  Trace trace = constants({30}, {10, 20, 30});
  trace.operations[0].replayable = true;
  trace.forms = {{TensorId{0}, "z", Bytes{60}, Bytes{12}, std::chrono::nanoseconds{5}, std::chrono::nanoseconds{7}}};
  Plan plan =
      copying(trace, device(), {run_again(0, 2), coding(CommandKind::decode, {}), coding(CommandKind::encode, 1)});
  plan.forms = {"z"};
  plan.initial.push_back({TensorId{0}, std::nullopt, FormId{1}, gpu, Bytes{100}, true});
  const Simulation simulation = run(trace, plan);
  // The end of the last operation; decode of the iteration before, for 7; op 0; encode; op 1; run; op 2; decode.
  CHECK(simulation.iteration.count() == 82);
  CHECK(simulation.compute.count() == 60);
  CHECK(times(simulation.operations) == Times{{7, 17}, {22, 42}, {52, 82}});
  CHECK(times(simulation.commands) == Times{{42, 52}, {82, 89}, {17, 22}});
  CHECK(ends(trace, plan, 2) == Ends{75, 157});
  CHECK(simulation.peaks == std::vector{Bytes{90}, Bytes{0}});
}

TEST_CASE("v2: commands at one position run in their own order, and position 0 is before the first operation") {
  Trace trace = constants({}, {10, 20});
  for (TraceOperation& operation : trace.operations) operation.replayable = true;
  const Plan plan = copying(trace, device(), {run_again(1, 1), run_again(0, 1), run_again(0, 0)});
  const Simulation simulation = run(trace, plan);
  CHECK(times(simulation.operations) == Times{{10, 20}, {50, 70}});
  CHECK(times(simulation.commands) == Times{{20, 40}, {40, 50}, {0, 10}});
  CHECK(ends(trace, plan, 2) == Ends{70, 140});
}

TEST_CASE("v2: an encoded value is copied in its expected size, and its place has the whole size") {
  Trace trace = constants({30}, {10, 10});
  trace.forms = {{TensorId{0}, "z", Bytes{60}, Bytes{12}, std::chrono::nanoseconds{5}, std::chrono::nanoseconds{7}}};
  Machine machine = device({link("out")});
  machine.memories[0].alignment = Bytes{50};
  Plan plan = copying(trace, machine, {copy(0, 0, {op(0)}, {1})});
  plan.forms = {"z"};
  plan.commands[0].form = FormId{1};
  plan.initial.push_back({TensorId{0}, std::nullopt, FormId{1}, gpu, Bytes{100}, true});
  const Simulation simulation = run(trace, plan);
  CHECK(times(simulation.commands) == Times{{10, 22}});
  CHECK(simulation.links == std::vector{Bytes{12}});
  CHECK(simulation.peaks == std::vector{Bytes{150}, Bytes{0}});
}

TEST_CASE("v2: engines run operations that have nothing in common at the same time") {
  Machine machine = device();
  machine.engines.push_back({"other", gpu});
  const Trace trace = on_engines(constants({}, {10, 25, 20}), {"gpu", "other"}, {0, 1, 0});
  const Plan plan = copying(trace, machine, {});
  const Simulation simulation = run(trace, plan);
  CHECK(simulation.iteration.count() == 30);
  CHECK(simulation.compute.count() == 30);
  CHECK(simulation.operations[0].end - simulation.operations[0].start == std::chrono::nanoseconds{10});
  CHECK(ends(trace, plan, 3) == Ends{30, 60, 90});
}

TEST_CASE("v2: an iteration ends when all its operations have ended, on all engines") {
  Machine machine = device();
  machine.engines.push_back({"other", gpu});
  const Trace trace = on_engines(constants({}, {10, 50, 20}), {"gpu", "other"}, {0, 1, 0});
  const Plan plan = copying(trace, machine, {});
  CHECK(ends(trace, plan, 3) == Ends{50, 100, 150});
  const Simulation simulation = run(trace, plan);
  CHECK(simulation.iteration.count() == 50);
  CHECK(simulation.compute.count() == 50);
  CHECK(times({simulation.operations[1]}) == Times{{0, 50}});
}

TEST_CASE("v2: operations that name no engine run on the first one with a memory") {
  Machine machine = device();
  machine.engines = {{"copies", std::nullopt}, {"gpu", gpu}};
  const Trace trace = constants({}, {10, 20});
  CHECK(run(trace, copying(trace, machine, {})).iteration.count() == 30);
}

TEST_CASE("v2: operations of engines with the same memory wait for those that they conflict with") {
  Machine machine = device();
  machine.engines.push_back({"other", gpu});
  Trace trace;
  trace.tensors = {tensor("x", 10, TensorKind::persistent)};
  trace.operations = {operation("write", 10, {}, {0}), operation("read", 20, {0}), operation("read too", 5, {0})};
  trace = on_engines(trace, {"gpu", "other"}, {0, 1, 0});
  const Plan plan = copying(trace, machine, {});
  // Two reads do not conflict. The next write waits for both.
  const Simulation simulation = run(trace, plan);
  CHECK(ends(trace, plan, 3) == Ends{30, 60, 90});
  CHECK(times(simulation.operations) == Times{{0, 10}, {10, 30}, {10, 15}});

  // Without a write nobody waits for anybody.
  trace.operations[0] = operation("read", 10, {0});
  trace.operations[1].duration = std::chrono::nanoseconds{15};
  CHECK(ends(trace, copying(trace, machine, {}), 3) == Ends{15, 30, 45});
}

TEST_CASE("v2: operations conflict only if they access the same part") {
  Machine machine = device();
  machine.engines.push_back({"other", gpu});
  Trace trace;
  trace.tensors = {tensor("x", 20, TensorKind::persistent)};
  trace.operations = {operation("first half", 10, {}, {}, {0}), operation("second half", 10, {}, {}, {0})};
  trace.ranges = {{OperationId{0}, TensorId{0}, Bytes{0}, Bytes{10}},
                  {OperationId{1}, TensorId{0}, Bytes{10}, Bytes{10}}};
  trace = on_engines(trace, {"gpu", "other"}, {0, 1});
  const Plan whole = copying(trace, machine, {});
  CHECK(ends(trace, whole, 3) == Ends{20, 40, 60});
  const auto divided = [&](std::uint64_t at) {
    Plan plan = whole;
    plan.pieces = {{TensorId{0}, {Bytes{at}}}};
    plan.initial.assign(2, plan.initial.front());
    plan.initial[0].piece = 0;
    plan.initial[1].piece = 1;
    plan.initial[1].offset = Bytes{at};
    return plan;
  };
  CHECK(ends(trace, divided(10), 3) == Ends{10, 20, 30});
  CHECK(ends(trace, divided(9), 3) == Ends{20, 40, 60});
  CHECK(ends(trace, divided(11), 3) == Ends{20, 40, 60});
  CHECK(run(trace, divided(10)).peaks[0] == Bytes{20});
}

TEST_CASE("v2: what the host reads and gives at the end of operations keeps their order across devices") {
  Machine machine = device();
  machine.memories.push_back({"gpu2", Bytes{100}, Bytes{1}, std::nullopt});
  machine.engines.push_back({"gpu2", gpu2});
  Trace trace;
  trace.tensors = {tensor("x", 20, TensorKind::input)};
  trace.operations = {operation("the host reads x", 10, {}), operation("the host gives x", 5, {})};
  trace = on_engines(trace, {"gpu", "gpu2"}, {0, 1});
  CHECK(ends(trace, plan_of(trace, machine, {}, {}), 3) == Ends{10, 20, 30});
  trace.host_reads = {{TensorId{0}, OperationId{0}}};
  const Plan plan = plan_of(trace, machine, {}, {});
  CHECK(ends(trace, plan, 3) == Ends{15, 30, 45});
  CHECK(times(run(trace, plan).operations) == Times{{0, 10}, {10, 15}});
}

TEST_CASE("v2: a piece is copied in its own size") {
  const Trace trace = constants({50}, {10, 10});
  Plan plan = copying(trace, device({link("out")}), {copy(0, 0, {op(0)}, {1}), copy(0, 0, {op(0)}, {1})});
  plan.pieces = {{TensorId{0}, {Bytes{20}}}};
  plan.initial = {place(0, 0), place(0, 20)};
  for (std::uint32_t piece = 0; piece < 2; ++piece) {
    plan.initial[piece].piece = piece;
    plan.commands[piece].piece = piece;
  }
  CHECK(times(run(trace, plan).commands) == Times{{10, 30}, {30, 60}});
}

TEST_CASE("v2: a value goes to another device, and before_operation from n on is an operation of the next iteration") {
  Machine machine = device();
  machine.memories.push_back({"gpu2", Bytes{100}, Bytes{1}, std::nullopt});
  machine.engines.push_back({"gpu2", gpu2});
  machine.links = {{"across", gpu, gpu2, byte_per_ns, std::chrono::nanoseconds{0}, std::nullopt, {}}};
  Trace trace;
  trace.tensors = {tensor("t", 20, TensorKind::transient)};
  trace.operations = {operation("make", 10, {}, {0}), operation("use", 15, {0})};
  trace = on_engines(trace, {"gpu", "gpu2"}, {0, 1});
  // The copy waits for the last use of what it overwrites. The next value waits for the copy, through its place.
  const Plan plan =
      plan_of(trace, machine, {place(0, 0), place(0, 0, gpu2)},
              {copy(0, 0, {op(0), op(-1)}, {1}), give_back(gpu, 0, {cmd(0)}), take(gpu, 0, 0, {cmd(1)}, {2})});
  CHECK(ends(trace, plan, 4) == Ends{45, 90, 135, 180});
  const Simulation simulation = run(trace, plan);
  CHECK(simulation.iteration.count() == 45);
  CHECK(simulation.compute.count() == 15);
  CHECK(times(simulation.operations) == Times{{0, 10}, {30, 45}});
  CHECK(times(simulation.commands) == Times{{10, 30}, {30, 30}, {30, 30}});
  CHECK(simulation.peaks == std::vector{Bytes{20}, Bytes{0}, Bytes{20}});
}

TEST_CASE("v2: a command waits for commands of the iteration before") {
  const Trace trace = constants({10, 30}, {10, 10});
  const Plan plan =
      copying(trace, device({link("a"), link("b")}), {copy(0, 0, {previous_cmd(1)}, {1}), copy(1, 1, {}, {1})});
  CHECK(ends(trace, plan, 4) == Ends{40, 70, 100, 130});
  const Simulation simulation = run(trace, plan);
  CHECK(times(simulation.operations) == Times{{0, 10}, {20, 30}});
  CHECK(times(simulation.commands) == Times{{-10, 0}, {-10, 20}});
}

TEST_CASE("v2: a command waits for operations of the iteration before") {
  const Trace trace = constants({10, 30}, {50, 10});
  const Plan plan =
      copying(trace, device({link("a"), link("b")}), {copy(0, 0, {op(-1)}, {1}), copy(1, 1, {op(-2)}, {1})});
  CHECK(ends(trace, plan, 3) == Ends{60, 120, 180});
  CHECK(times(run(trace, plan).commands) == Times{{0, 10}, {-10, 20}});
}

TEST_CASE("v2: peaks count what is occupied at one time in each memory, half-open, in rounded sizes") {
  Trace trace;
  trace.tensors = {tensor("a", 30, TensorKind::persistent), tensor("b", 50, TensorKind::persistent),
                   tensor("c", 7, TensorKind::persistent)};
  trace.operations = {operation("read a", 10, {0}), operation("read b", 100, {1})};
  Machine machine = device();
  machine.memories[0] = {"gpu", Bytes{60}, Bytes{20}, std::nullopt};
  machine.memories.push_back({"gpu2", Bytes{100}, Bytes{1}, std::nullopt});
  machine.links = {{"in", host, gpu, byte_per_ns, std::chrono::nanoseconds{0}, std::nullopt, {}}};
  // One after the other at the same place: never both. Each takes its place when the other gives it back.
  const Plan plan = plan_of(trace, machine, {place(2, 0, gpu2)},
                            {copy_to(0, 0, 0, {previous_cmd(3)}, {0}), give_back(gpu, 0, {op(0)}),
                             copy_to(0, 1, 0, {cmd(1)}, {1}), give_back(gpu, 1, {op(1)})});
  const Simulation simulation = run(trace, plan);
  CHECK(simulation.peaks == std::vector{Bytes{60}, Bytes{0}, Bytes{7}});
  CHECK(times(simulation.commands) == Times{{0, 30}, {40, 40}, {40, 90}, {190, 190}});
  CHECK(simulation.iteration.count() == 190);
}

TEST_CASE("v2: peaks are those of the long run") {
  const Trace trace = constants({200, 5, 40, 50}, {10, 100});
  // The next iteration waits for a slow copy. Two tensors are on the device at the same time only in the first one,
  // which waits for nothing.
  const Plan plan = plan_of(trace, device({link("slow"), link("quick")}), {place(0, 0), place(1, 200)},
                            {copy(0, 0, {op(0)}, {2}), take(gpu, 2, 300, {previous_cmd(0), previous_cmd(2)}),
                             give_back(gpu, 2, {op(0), cmd(1)}), take(gpu, 3, 400, {op(-2), previous_cmd(5)}),
                             copy(1, 1, {op(-1)}), give_back(gpu, 3, {cmd(3), cmd(4)})});
  const Simulation simulation = run(trace, plan);
  CHECK(simulation.iteration.count() == 210);
  CHECK(times(simulation.commands) == Times{{110, 310}, {100, 100}, {110, 110}, {-100, -100}, {0, 5}, {5, 5}});
  CHECK(simulation.peaks == std::vector{Bytes{255}, Bytes{0}});
}

TEST_CASE("v2: iterations may alternate, and halves of the mean are rounded up") {
  Trace trace;
  trace.tensors = {tensor("a", 17, TensorKind::persistent), tensor("b", 16, TensorKind::persistent)};
  trace.operations = {operation("read b", 1, {1}), operation("read a", 1, {0})};
  const swapmm::Plan alternating =
      test::plan(trace, test::machine(33), {resident(0, 0, true), resident(1, 17, true)},
                 {swap_out(0, {op(-1)}), release(1, {op(0)}), swap_in(1, 17, {cmd(0), cmd(1)}, 2)});
  const Plan plan = from_version_1(alternating);
  CHECK(ends(trace, plan, 8) == Ends{2, 35, 52, 70, 87, 105, 122, 140});
  const Simulation simulation = run(trace, plan);
  CHECK(simulation.iteration.count() == 18);  // 17.5
  CHECK(simulation.peaks == std::vector{Bytes{33}, Bytes{0}});
}

TEST_CASE("v2: a plan that takes no time at all is simulated, too") {
  Trace trace = constants({30, 10}, {0, 0});
  trace.forms = {{TensorId{0}, "z", Bytes{60}, Bytes{0}, std::chrono::nanoseconds{0}, std::chrono::nanoseconds{0}}};
  Plan plan = copying(trace, device({link("out")}), {coding(CommandKind::encode, 1), copy(0, 0, {cmd(0)}, {2})});
  plan.forms = {"z"};
  plan.commands[1].form = FormId{1};
  plan.initial.push_back({TensorId{0}, std::nullopt, FormId{1}, gpu, Bytes{100}, true});
  const Simulation simulation = run(trace, plan);
  CHECK(simulation.iteration.count() == 0);
  CHECK(simulation.peaks == std::vector{Bytes{100}, Bytes{0}});
  CHECK(times(simulation.operations) == Times{{0, 0}, {0, 0}});
  CHECK(ends(trace, plan, 3) == Ends{0, 0, 0});
}

TEST_CASE("v2: what nothing waits for neither keeps the simulation from ending nor changes it") {
  const Trace trace = constants({10, 30}, {10, 10});
  // At time 0 again and again.
  const Plan places = plan_of(trace, device(), {}, {take(gpu, 0, 0, {previous_cmd(1)}), give_back(gpu, 0, {cmd(0)})});
  CHECK(run(trace, places).iteration.count() == 20);
  CHECK(ends(trace, places, 2) == Ends{20, 40});
  // Ever further ahead.
  CHECK(run(trace, copying(trace, device({link("a")}), {copy(0, 0, {})})).iteration.count() == 20);
  // Ever further behind.
  const Simulation behind = run(trace, copying(trace, device({link("a")}), {copy(1, 0, {})}));
  CHECK(behind.iteration.count() == 20);
  CHECK(behind.commands[0].end - behind.commands[0].start == std::chrono::nanoseconds{30});
  // Far behind, and far ahead of something that takes long.
  const Trace slow = constants({std::uint64_t{1} << 55U, 10}, {std::int64_t{1} << 50U});
  Machine machine = device({link("a"), link("b")});
  machine.memories[0].bytes = Bytes{std::uint64_t{1} << 60U};
  CHECK(run(slow, copying(slow, machine, {copy(0, 0, {}), copy(1, 1, {})})).iteration.count() == std::int64_t{1}
                                                                                                     << 50U);
}

TEST_CASE("v2: the mean is exact although a copy on which nothing depends falls behind without end") {
  // Six copies, each of which waits for the one before it, in a circle through three iterations; and the slow one.
  const std::vector<std::uint64_t> sizes = {10'000, 10'000, 10'000, 10'000, 10'000, 19'999, 10'000};
  const Trace trace = constants(sizes, {1});
  Machine machine =
      device({link("a"), link("b"), link("c"), link("d"), link("e"), link("f"), link("slow", byte_per_ns / 5)});
  machine.memories[0].bytes = Bytes{100'000};
  const Plan plan =
      copying(trace, machine,
              {copy(0, 0, {previous_cmd(5)}, {0}), copy(1, 1, {cmd(0)}), copy(2, 2, {previous_cmd(1)}),
               copy(3, 3, {cmd(2)}), copy(4, 4, {previous_cmd(3)}), copy(5, 5, {cmd(4)}), copy(6, 6, {})});
  const Simulation simulation = run(trace, plan);
  CHECK(simulation.iteration.count() == 69'999 / 3);
  CHECK(simulation.commands[6].end - simulation.commands[6].start == std::chrono::nanoseconds{50'000});
  const Ends many = ends(trace, plan, 1000);
  CHECK(many[999] - many[996] == 69'999);
  CHECK((many[999] - many[499]) / 500 != 69'999 / 3);
}

TEST_CASE("v2: times that do not fit stay at the end of time instead of wrapping") {
  const std::int64_t longest = longest_iteration.count();
  const Trace trace =
      constants({(std::uint64_t{1} << 62U) - 1}, {std::int64_t{1} << 61U, (std::int64_t{1} << 61U) - 1});
  Machine machine = device({link("slow", 1, (std::int64_t{1} << 62U) - 1)});
  machine.memories[0].bytes = Bytes{(std::uint64_t{1} << 62U) - 1};
  const Plan stays = copying(trace, machine, {});
  CHECK(ends(trace, stays, 3) == Ends{longest, longest, longest});
  CHECK(run(trace, stays).iteration.count() == longest);
  const Plan copies = copying(trace, machine, {copy(0, 0, {op(0)}, {1})});
  CHECK(ends(trace, copies, 3) == Ends{longest, longest, longest});
  CHECK(run(trace, copies).iteration.count() == longest);
  CHECK(run(trace, copies).compute.count() == longest);
}

TEST_CASE("v2: plans of version 1 have the same times, bytes and peaks in version 2") {
  const Seeds range = seeds(40);
  for (std::uint64_t seed = range.first; seed < range.first + range.count; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    RandomTraceOptions options;
    options.operations = 1 + one_of(random, 12);
    options.tensors = 1 + one_of(random, 8);
    const Trace trace = random_trace(random, options);
    const swapmm::Machine machine = random_machine_for(trace, random, below_or_equal(random, 120));
    for (const NamedPlanner& planner : planners()) {
      CAPTURE(planner.name);
      const Result<swapmm::Plan> made = make_plan(planner.name, trace, machine);
      if (!made) continue;
      const Plan plan = from_version_1(*made);
      const swapmm::Simulation expected = swapmm::simulate(trace, *made);
      const Simulation simulation = v2::simulate(trace, plan);
      CHECK(simulation.iteration == expected.iteration);
      CHECK(simulation.compute == expected.compute);
      CHECK(simulation.links == std::vector{expected.h2d, expected.d2h});
      CHECK(simulation.peaks == std::vector{expected.peak, Bytes{0}});
      CHECK(v2::iteration_ends(trace, plan, 8) == swapmm::iteration_ends(trace, *made, 8));
    }
  }
}

}  // namespace swapmm::v2::simulator_test
