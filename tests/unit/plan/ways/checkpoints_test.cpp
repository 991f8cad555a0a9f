// SPDX-License-Identifier: Apache-2.0
// Checkpoints of a chain, changes at random, and what plans for small traces gain by them.
#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/plan/v2/engines.hpp>
#include <swapmm/plan/v2/planners.hpp>
#include <swapmm/plan/v2/validate.hpp>
#include <swapmm/plan/ways.hpp>
#include <swapmm/plan/ways/changes.hpp>
#include <swapmm/plan/ways/checkpoints.hpp>

#include "support/plain_traces.hpp"

namespace swapmm::test::checkpoints_test {
namespace {

using std::chrono::nanoseconds;

constexpr TensorId id(std::size_t i) { return static_cast<TensorId>(i); }

/// Each operation makes a value of 1000 bytes of the one before, and the operations behind them need the values from
/// the last one to the first. All take 1000 ns.
Trace there_and_back(std::size_t count, bool is_replayable) {
  Trace trace;
  trace.name = "there and back";
  for (std::size_t i = 0; i < count; ++i) {
    trace.tensors.push_back({"a" + std::to_string(i), Bytes{1000}, TensorKind::transient, 0});
    trace.operations.push_back(operation(1000, i == 0 ? std::vector<TensorId>{} : std::vector{id(i - 1)}, {id(i)}));
    trace.operations.back().replayable = is_replayable;
  }
  for (std::size_t i = count; i-- > 0;) trace.operations.push_back(operation(1000, {id(i)}));
  return trace;
}

void add_forms(Trace& trace) {
  for (std::size_t t = 0; t < trace.tensors.size(); ++t) {
    trace.forms.push_back({id(t), "z", Bytes{250}, Bytes{250}, nanoseconds{50}, nanoseconds{50}});
  }
}

/// A device and a host with links of a byte a nanosecond.
v2::Machine device_and_host(std::uint64_t device, std::optional<Bytes> host) {
  v2::Machine machine = v2::from_version_1(machine_of(device));
  machine.memories[index(machine.host)].bytes = host;
  return machine;
}

nanoseconds best_of(const Trace& trace, const v2::Machine& machine) {
  const Result<v2::Plan> plan = v2::make_plan("best", trace, machine);
  REQUIRE(plan);
  CHECK(v2::validate(trace, *plan).empty());
  return plan->predicted.iteration;
}

/// What a chain costs with so many kept values, for each position from where the next value is made again.
std::size_t replays_of(std::size_t layers, std::size_t kept) {
  const Trace trace = there_and_back(layers, true);
  const Trace plain = planning::without_ways(trace);
  const Machine small = machine_of(2000);
  const Result<planning::PlanningCase> planning = planning::make_planning_case(plain, small);
  REQUIRE(planning);
  const planning::ValueHistory history(trace);
  const planning::CheckpointChoice choice(trace, history, *planning, kept);
  REQUIRE(choice.most_kept() == std::min(kept, layers - 1));
  const std::vector<Replay> replays = choice.choose(choice.most_kept());
  CHECK(with_ways(trace, {replays, {}, {}}));
  return replays.size();
}

TEST_CASE("checkpoints of a chain take as few replays as there can be") {
  // The last value is used at once, and the one before it is there. So of five layers, three values are made again.
  CHECK(replays_of(5, 0) == 3 + 2 + 1);
  CHECK(replays_of(5, 1) == 2);  // the second is kept, the third made of it, the first from the beginning
  CHECK(replays_of(5, 2) == 1);
  CHECK(replays_of(5, 3) == 0);
  CHECK(replays_of(9, 0) == 7 * 8 / 2);
  // With one kept at a time: of the first seven, the fifth; two behind it (1), then four (3 + 2 + 1 without a place,
  // 2 + 1 with the one that is free again).
  CHECK(replays_of(9, 1) == 9);
  CHECK(replays_of(9, 7) == 0);
}

TEST_CASE("traces with too many feature maps have no such choice") {
  const Trace trace = there_and_back(planning::CheckpointChoice::most_maps + 2, true);
  const Trace plain = planning::without_ways(trace);
  const Machine small = machine_of(2000);
  const Result<planning::PlanningCase> planning = planning::make_planning_case(plain, small);
  REQUIRE(planning);
  const planning::ValueHistory history(trace);
  const planning::CheckpointChoice choice(trace, history, *planning, 4);
  CHECK(choice.most_kept() == 0);
  CHECK(choice.choose(0).empty());
}

TEST_CASE("changes at random are possible ways, the same ones in each run, and reach every way") {
  Trace trace = there_and_back(8, true);
  add_forms(trace);
  const Trace plain = planning::without_ways(trace);
  const Machine small = machine_of(3000);
  const Result<planning::PlanningCase> planning = planning::make_planning_case(plain, small);
  REQUIRE(planning);
  const planning::ValueHistory history(trace);
  planning::WayChanges changes(trace, history, *planning);
  planning::WayChanges same(trace, history, *planning);
  REQUIRE_FALSE(changes.empty());
  WaysBack ways;
  std::vector<bool> replayed(8, false);
  std::vector<bool> encoded(8, false);
  std::size_t fewer = 0;
  for (int step = 0; step < 500; ++step) {
    const WaysBack next = changes.change(ways);
    REQUIRE(same.change(ways) == next);
    REQUIRE(with_ways(trace, next));
    for (const Replay& replay : next.replays) replayed[index(replay.operation)] = true;
    for (const Coding& coding : next.codings) encoded[index(coding.tensor)] = true;
    if (next.replays.size() + next.codings.size() < ways.replays.size() + ways.codings.size()) ++fewer;
    ways = next;
  }
  CHECK(fewer > 50);
  for (std::size_t i = 0; i < 7; ++i) {  // the last value is used at once
    CHECK(replayed[i]);
    CHECK(encoded[i]);
  }
  CHECK_FALSE(replayed[7]);
  CHECK_FALSE(encoded[7]);
}

TEST_CASE("where nothing can be made again or encoded, there are no changes") {
  const Trace trace = there_and_back(8, false);
  const Machine small = machine_of(3000);
  const Result<planning::PlanningCase> planning = planning::make_planning_case(trace, small);
  REQUIRE(planning);
  const planning::ValueHistory history(trace);
  CHECK(planning::WayChanges(trace, history, *planning).empty());
}

TEST_CASE("over a link that is too slow to use, a chain takes little more than with the best checkpoints") {
  // 20 layers with room for three values beside an operation's own two: 34 replays are the fewest.
  const Trace trace = there_and_back(20, true);
  Machine slow = machine_of(4000);
  slow.h2d.bytes_per_second = slow.d2h.bytes_per_second = 1'000'000;
  const Result<PlanWithWays> made = plan_with_ways(trace, slow);
  REQUIRE(made);
  CHECK(made->plan.predicted.h2d == Bytes{0});
  CHECK(made->plan.predicted.iteration <= nanoseconds{40'000 + 30'000});
}

TEST_CASE("an operation runs again even if it takes longer than its value is away") {
  Trace trace;
  trace.name = "x";
  for (const std::uint64_t bytes : {100, 1000, 1000, 1000})
    trace.tensors.push_back(tensor(bytes, TensorKind::transient));
  trace.operations = {operation(100, {}, {id(0)}), operation(1000, {id(0)}, {id(1)}), operation(100, {id(1)}),
                      operation(500, {}, {id(2), id(3)}), operation(100, {id(1)})};
  trace.operations[1].replayable = true;
  Machine slow = machine_of(2100);
  slow.h2d.bytes_per_second = slow.d2h.bytes_per_second = 100'000'000;
  const Result<PlanWithWays> made = plan_with_ways(trace, slow);
  REQUIRE(made);
  CHECK(made->plan.predicted.iteration == nanoseconds{2800});  // and not 10,000 for each copy
}

TEST_CASE("ways make room in a small host, however fast its link is") {
  Trace coded = there_and_back(3, false);
  add_forms(coded);
  // Nothing has to leave: two values are encoded once while the third one is made.
  CHECK(best_of(coded, device_and_host(2250, Bytes{1})) == nanoseconds{6100});

  Trace longer = there_and_back(8, false);
  add_forms(longer);
  CHECK(best_of(longer, device_and_host(2500, Bytes{1500})) <= nanoseconds{16'700});

  const Trace replayed = there_and_back(8, true);
  CHECK(best_of(replayed, device_and_host(2000, Bytes{2000})) <= nanoseconds{21'000});
}

TEST_CASE("a tensor with forms is divided where that is better, or the only way") {
  Trace trace;
  trace.name = "x";
  trace.tensors = {tensor(1000), tensor(10, TensorKind::transient), tensor(990, TensorKind::transient)};
  trace.operations = {operation(100, {id(0)}, {id(1)}), operation(100, {id(1)}), operation(100, {}, {id(2)})};
  trace.ranges = {{OperationId{0}, id(0), Bytes{0}, Bytes{10}}};
  trace.forms = {{id(0), "z", Bytes{1010}, Bytes{1010}, nanoseconds{50}, nanoseconds{50}}};
  CHECK(best_of(trace, device_and_host(1010, std::nullopt)) == nanoseconds{300});
  trace.tensors.pop_back();
  trace.operations.pop_back();
  CHECK(best_of(trace, device_and_host(100, std::nullopt)) == nanoseconds{200});
}

/// One engine makes values, another one of the same memory or of another one reads them.
Trace two_streams() {
  Trace trace;
  trace.name = "streams";
  trace.engines = {"s0", "s1"};
  for (std::size_t i = 0; i < 6; ++i) trace.tensors.push_back(tensor(1000, TensorKind::transient));
  for (std::size_t i = 0; i < 6; ++i) trace.tensors.push_back(tensor(1000));
  for (std::size_t i = 0; i < 6; ++i) {
    trace.operations.push_back(operation(1000, {id(6 + i)}, {id(i)}));
    trace.operations.back().engine = 0;
    trace.operations.push_back(operation(1000, {id(i)}));
    trace.operations.back().engine = 1;
  }
  return trace;
}

TEST_CASE("engines of one memory work at the same time where all values have room") {
  const Trace trace = two_streams();
  v2::Machine machine = device_and_host(13'000, std::nullopt);
  machine.engines.insert(machine.engines.begin(), {"s0", machine.engines[0].memory});
  machine.engines[1].name = "s1";
  for (v2::Link& link : machine.links) link.engine.reset();
  std::erase_if(machine.engines, [](const v2::Engine& engine) { return !engine.memory; });
  // The second one begins when it has its first value, and in the next iteration both go on at once.
  CHECK(best_of(trace, machine) <= nanoseconds{7000});
}

}  // namespace
}  // namespace swapmm::test::checkpoints_test
