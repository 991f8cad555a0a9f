// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/plan/v2/planners.hpp>
#include <swapmm/plan/v2/validate.hpp>
#include <swapmm/plan/ways.hpp>
#include <swapmm/plan/ways/units.hpp>

namespace swapmm::test::units_test {
using std::chrono::nanoseconds;

constexpr TensorId id(std::uint32_t i) { return static_cast<TensorId>(i); }
constexpr OperationId op(std::uint32_t i) { return static_cast<OperationId>(i); }

/// A chain of layers, each of which makes a map of 100 bytes of the one before, and back: the gradient needs the maps
/// in the opposite order. Layers 1, 3, ... take 10 ns, the others 100.
Trace layers(std::uint32_t count) {
  Trace trace;
  trace.name = "layers";
  trace.tensors.push_back({"x", Bytes{100}, TensorKind::persistent, 0});
  for (std::uint32_t i = 0; i < count; ++i) {
    trace.tensors.push_back({"map " + std::to_string(i), Bytes{100}, TensorKind::transient, 0});
    TraceOperation forward;
    forward.name = "layer " + std::to_string(i);
    forward.duration = nanoseconds{i % 2 == 1 ? 10 : 100};
    forward.reads = {id(i)};
    forward.writes = {id(i + 1)};
    forward.replayable = true;
    trace.operations.push_back(std::move(forward));
  }
  trace.tensors.push_back({"gradient", Bytes{100}, TensorKind::transient, 0});
  for (std::uint32_t i = count; i > 0; --i) {
    TraceOperation back;
    back.name = "back " + std::to_string(i - 1);
    back.duration = nanoseconds{100};
    back.reads = {id(i)};
    (i == count ? back.writes : back.updates) = {id(count + 1)};
    trace.operations.push_back(std::move(back));
  }
  return trace;
}

Machine machine(std::uint64_t budget, std::uint64_t bytes_per_second) {
  Machine made;
  made.name = "m";
  made.device_budget = Bytes{budget};
  made.alignment = Bytes{1};
  made.h2d = made.d2h = {bytes_per_second, nanoseconds{0}};
  return made;
}

TEST_CASE("a unit's values behind its checkpoint are made again before the first of them is needed") {
  const Trace trace = layers(8);
  const Trace plain = planning::without_ways(trace);
  const Machine small = machine(400, 1'000'000'000);
  const Result<planning::PlanningCase> planning = planning::make_planning_case(plain, small);
  REQUIRE(planning);
  const planning::ValueHistory history(trace);
  const planning::UnitChoice choice(trace, history, *planning);
  REQUIRE(choice.feature_maps() >= 6);
  // In two units; the first one has maps 0 to 3 or so, and its checkpoint is map 0.
  const std::vector<Replay> both = choice.choose(2, 2);
  REQUIRE_FALSE(both.empty());
  for (const Replay& replay : both) {
    CAPTURE(index(replay.operation));
    CHECK(index(replay.operation) != 0);
    CHECK(
        history.may_run_again(static_cast<std::uint32_t>(replay.operation), static_cast<std::uint32_t>(replay.before)));
  }
  const std::vector<Replay> one = choice.choose(2, 1);
  CHECK(one.size() < both.size());
  // All of a unit run again before the same operation, in order.
  for (const Replay& replay : one) CHECK(replay.before == one.front().before);
  const Result<WrittenTrace> written = with_ways(trace, {both, {}, {}});
  REQUIRE(written);
  CHECK(written->trace.operations.size() == trace.operations.size() + both.size());
}

TEST_CASE("over a slow link units are recomputed, and the plan is valid in version 2") {
  const Trace trace = layers(16);
  const Machine slow = machine(700, 100'000'000);  // 1000 ns for a map, which takes 10 or 100 to make
  const Result<PlanWithWays> made = plan_checkpoint_units(trace, slow);
  REQUIRE(made);
  CHECK_FALSE(made->ways.replays.empty());
  CHECK(made->plan.planner == "checkpoint-units");
  PlanningOptions copies;
  copies.ways.recompute = false;
  const Result<PlanWithWays> copied = plan_checkpoint_units(trace, slow, copies);
  REQUIRE(copied);
  CHECK(copied->ways.empty());
  CHECK(made->plan.predicted.iteration < copied->plan.predicted.iteration);
  const v2::Machine same = v2::from_version_1(slow);
  const Result<v2::Plan> plan = v2::make_plan("checkpoint-units", trace, same);
  REQUIRE(plan);
  CHECK(v2::validate(trace, *plan).empty());
  CHECK(plan->predicted.iteration == made->plan.predicted.iteration);
  const Result<v2::Plan> best = v2::make_plan("best", trace, same);
  REQUIRE(best);
  CHECK(best->predicted.iteration <= plan->predicted.iteration);
}

TEST_CASE("the bound of the baseline is one for plans that divide tensors, too") {
  // Whole tensors have to leave for each other. Half of x is never needed, and the other half fits beside y.
  Trace trace;
  trace.tensors = {{"x", Bytes{80}, TensorKind::persistent, 0}, {"y", Bytes{60}, TensorKind::transient, 0}};
  const nanoseconds ten{10};
  trace.operations = {{"change x", ten, {}, {}, {TensorId{0}}},
                      {"make y", ten, {}, {TensorId{1}}, {}},
                      {"use y", ten, {TensorId{1}}, {}, {}}};
  for (TraceOperation& operation : trace.operations) operation.in_pieces = true;
  trace.ranges = {{OperationId{0}, TensorId{0}, Bytes{0}, Bytes{40}}};
  const v2::Machine small = v2::from_version_1(machine(100, 1'000'000'000));
  const Result<v2::Plan> whole = v2::make_plan("checkpoint-units", trace, small);
  const Result<v2::Plan> divided = v2::make_plan("best", trace, small);
  REQUIRE((whole && divided));
  CHECK(divided->predicted.iteration == 3 * ten);
  CHECK(whole->predicted.iteration > 3 * ten);
  CHECK(whole->predicted.lower_bound == 3 * ten);
}

TEST_CASE("where nothing may run again, the baseline copies") {
  Trace trace = layers(16);
  for (TraceOperation& operation : trace.operations) operation.replayable = false;
  const Result<PlanWithWays> made = plan_checkpoint_units(trace, machine(700, 100'000'000));
  REQUIRE(made);
  CHECK(made->ways.empty());
}

}  // namespace swapmm::test::units_test
