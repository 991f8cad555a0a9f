// SPDX-License-Identifier: Apache-2.0
// Choices of ways that are improved by plans, where few large tensors have room and the relaxed problem sees no stalls.
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/ir/liveness.hpp>
#include <swapmm/plan/problem/planning_case.hpp>
#include <swapmm/plan/simulate.hpp>
#include <swapmm/plan/validate.hpp>
#include <swapmm/plan/ways.hpp>
#include <swapmm/plan/ways/candidate.hpp>
#include <swapmm/plan/ways/choices.hpp>
#include <swapmm/plan/ways/program/history.hpp>

#include "support/bound_of_ways.hpp"

namespace swapmm::test::refinement_test {
using std::chrono::nanoseconds;

constexpr std::uint32_t parts = 4;
constexpr std::uint64_t large = 100;

/// Three layers and a pool forward, part by part, and the way back. Layers 1 to 3 make a large tensor of each part.
class Layers {
 public:
  Layers() {
    trace_.name = "layers";
    const TensorId images = tensor("images", 1, TensorKind::persistent);
    std::vector<TensorId> first;
    std::vector<TensorId> second;
    std::vector<TensorId> third;
    std::vector<TensorId> pooled;
    for (std::uint32_t i = 0; i < parts; ++i) first.push_back(forward("first", i, 90, images, large));
    for (std::uint32_t i = 0; i < parts; ++i) second.push_back(forward("second", i, 150, first[i], large));
    for (std::uint32_t i = 0; i < parts; ++i) third.push_back(forward("third", i, 150, second[i], large));
    for (std::uint32_t i = 0; i < parts; ++i) pooled.push_back(forward("pool", i, 20, third[i], 25));
    std::vector<TensorId> gradients;
    for (std::uint32_t i = 0; i < parts; ++i) gradients.push_back(back("pool", i, 2000, {pooled[i]}, large));
    for (const auto& [name, inputs] : {std::pair{"third", &second}, std::pair{"second", &first}}) {
      for (std::uint32_t i = 0; i < parts; ++i) {
        gradients[i] = back(name, i, 600, {(*inputs)[i], gradients[i]}, large);
      }
    }
    for (std::uint32_t i = 0; i < parts; ++i) (void)back("first", i, 300, {images, gradients[i]}, 1);
  }
  [[nodiscard]] const Trace& trace() const { return trace_; }

 private:
  TensorId tensor(std::string name, std::uint64_t bytes, TensorKind kind = TensorKind::transient) {
    trace_.tensors.push_back({std::move(name), Bytes{bytes}, kind, 0});
    return static_cast<TensorId>(trace_.tensors.size() - 1);
  }
  TensorId forward(const std::string& layer, std::uint32_t part, std::int64_t time, TensorId from,
                   std::uint64_t bytes) {
    const TensorId made = tensor(layer + std::to_string(part), bytes);
    operation(layer + std::to_string(part), time, {from}, made, true);
    return made;
  }
  TensorId back(const std::string& layer, std::uint32_t part, std::int64_t time, std::vector<TensorId> from,
                std::uint64_t bytes) {
    const std::string name = layer + std::to_string(part) + " back";
    const TensorId made = tensor(name, bytes);
    operation(name, time, std::move(from), made, false);
    return made;
  }
  void operation(std::string name, std::int64_t time, std::vector<TensorId> reads, TensorId writes, bool replayable) {
    TraceOperation made;
    made.name = std::move(name);
    made.duration = nanoseconds{time};
    made.reads = std::move(reads);
    made.writes = {writes};
    made.replayable = replayable;
    trace_.operations.push_back(std::move(made));
  }

  Trace trace_;
};

/// Room for six large tensors; a copy of one takes 760 ns, five to eight times as long as to make it again.
Machine machine() {
  Machine made;
  made.name = "m";
  made.device_budget = Bytes{650};
  made.alignment = Bytes{1};
  made.h2d = made.d2h = {131'578'948, nanoseconds{0}};
  return made;
}

nanoseconds compute_of(const Trace& trace) {
  nanoseconds sum{0};
  for (const TraceOperation& operation : trace.operations) sum += operation.duration;
  return sum;
}

void check_plan(const Trace& trace, const PlanWithWays& made) {
  const Result<WrittenTrace> written = with_ways(trace, made.ways);
  REQUIRE(written);
  CHECK(validate(written->trace, made.plan).empty());
  CHECK(simulate(written->trace, made.plan).iteration == made.plan.predicted.iteration);
}

TEST_CASE("a plan that waits for few large values makes them again") {
  const Trace trace = Layers().trace();
  WaysOptions unplanned;
  unplanned.planned.work = 0;
  const Result<PlanWithWays> before = plan_with_ways(trace, machine(), {}, unplanned);
  const Result<PlanWithWays> after = plan_with_ways(trace, machine());
  REQUIRE(before);
  REQUIRE(after);
  // Of 15,640 ns of computation, the rest are stalls and replays: 2,660 ns before, 760 ns after.
  const nanoseconds compute = compute_of(trace);
  CHECK(compute.count() == 15'640);
  CHECK(before->plan.predicted.iteration - compute > 3 * (after->plan.predicted.iteration - compute));
  check_plan(trace, *before);
  check_plan(trace, *after);

  WaysOptions no_omissions;  // all replays that stalls ask for stay
  no_omissions.omissions = 0;
  const Result<PlanWithWays> unpruned = plan_with_ways(trace, machine(), {}, no_omissions);
  REQUIRE(unpruned);
  CHECK(unpruned->plan.predicted.iteration > after->plan.predicted.iteration);
  CHECK(unpruned->ways.replays.size() > after->ways.replays.size());
  check_plan(trace, *unpruned);

  WaysOptions no_factors;
  no_factors.planned.price_factors = {};  // the best choice alone is improved
  const Result<PlanWithWays> improved = plan_with_ways(trace, machine(), {}, no_factors);
  REQUIRE(improved);
  CHECK(improved->plan.predicted.iteration <= before->plan.predicted.iteration);
  check_plan(trace, *improved);
}

TEST_CASE("whenever the time ends, the plan is as fast as the fastest that was told of, and what was told holds") {
  const Trace trace = Layers().trace();
  for (int end = 0; end < 400; end += 1 + end / 4) {
    CAPTURE(end);
    int asked = 0;
    nanoseconds told = nanoseconds::max();
    nanoseconds bound{0};
    PlanningOptions limits;
    limits.go_on = [&](const PlanningProgress& progress) {
      const bool is_first = told == nanoseconds::max() && progress.iteration.count() == 0;
      CHECK((is_first || progress.iteration <= told));
      if (!is_first) told = progress.iteration;
      bound = std::max(bound, progress.lower_bound);
      return asked++ < end;
    };
    const Result<PlanWithWays> made = plan_with_ways(trace, machine(), limits);
    REQUIRE(made);
    CHECK(made->plan.predicted.iteration <= told);
    CHECK(bound == compute_of(trace));
    check_plan(trace, *made);
  }
}

TEST_CASE("the bound comes when a part of the time has passed, and the search goes on after it") {
  const Trace trace = Layers().trace();
  const auto unlimited = plan_with_ways(trace, machine());
  REQUIRE(unlimited);
  int in_full = 0;
  int in_part = 0;
  int after_it = 0;
  PlanningOptions limits;
  limits.go_on = [&](const PlanningProgress& progress) {
    if (progress.part < 1) {
      ++in_part;
      return false;
    }
    if (in_part > 0) ++after_it;
    return in_full++ < 3'000;
  };
  const auto made = plan_with_ways(trace, machine(), limits);
  REQUIRE(made);
  CHECK(in_part > 0);
  CHECK(after_it > 0);
  CHECK(made->plan.predicted.lower_bound == unlimited->plan.predicted.lower_bound);
  CHECK(made->plan.predicted.lower_bound > compute_of(trace));
  check_plan(trace, *made);
}

TEST_CASE("values whose copies are dearer than others are made again at a price at which others are copied") {
  const Trace trace = Layers().trace();
  const planning::ValueHistory history(trace);
  const Trace plain = planning::without_ways(trace);
  const Machine on = machine();
  const Result<planning::PlanningCase> planning = planning::make_planning_case(plain, on);
  REQUIRE(planning);
  planning::WayChoice choice(trace, history, *planning);
  planning::WayCriteria criteria{.copy_price = 0.5};  // 50 ns for a large tensor
  CHECK(choice.choose(criteria).empty());
  criteria.dearer.assign(trace.tensors.size(), 1.0);
  CHECK(choice.choose(criteria).empty());
  const auto named = [&](const auto& list, const std::string& name) {
    return static_cast<std::size_t>(std::ranges::find_if(list, [&](const auto& one) { return one.name == name; }) -
                                    list.begin());
  };
  criteria.dearer[named(trace.tensors, "second2")] =
      8;  // 400 ns: more than the 150 of its operation and the input's 50
  const WaysBack ways = choice.choose(criteria);
  // Twice, for both operations that read it; no other value.
  REQUIRE(ways.replays.size() == 2);
  for (const Replay& replay : ways.replays) CHECK(index(replay.operation) == named(trace.operations, "second2"));
  CHECK(index(ways.replays[0].before) == named(trace.operations, "third2"));
  CHECK(index(ways.replays[1].before) == named(trace.operations, "third2 back"));
}

/// Twelve values are made in two steps each, and needed in reverse order; each step's result lingers until the value is
/// there, or the iteration ends. Four of the tensors have room; computing is much cheaper than copying.
TEST_CASE("values that linger do not hide that others are made again at less cost") {
  Trace trace;
  trace.name = "step";
  const auto add = [&](TensorKind kind) {
    trace.tensors.push_back({"t", Bytes{65536}, kind, 0});
    return id_at<TensorId>(trace.tensors.size() - 1);
  };
  const auto run = [&](std::vector<TensorId> reads, std::vector<TensorId> writes) {
    TraceOperation operation;
    operation.name = "o";
    operation.duration = std::chrono::microseconds{90};
    operation.reads = std::move(reads);
    operation.writes = std::move(writes);
    operation.replayable = true;
    trace.operations.push_back(std::move(operation));
    return static_cast<std::uint32_t>(trace.operations.size() - 1);
  };
  constexpr std::uint32_t count = 12;
  const TensorId x = add(TensorKind::persistent);
  std::vector<TensorId> values;
  for (std::uint32_t i = 0; i < count; ++i) {
    const TensorId first = add(TensorKind::transient);
    const TensorId second = add(TensorKind::transient);
    const TensorId mask = add(TensorKind::transient);
    values.push_back(add(TensorKind::transient));
    const std::uint32_t made = run({x}, {first});
    run({first}, {second});
    run({}, {mask});
    const std::uint32_t end = run({second, mask}, {values.back()});
    trace.lingering.push_back({first, id_at<OperationId>(made + 1), end + 1});
    trace.lingering.push_back({second, id_at<OperationId>(end), end + 1});
    trace.lingering.push_back({mask, id_at<OperationId>(end), end + 1});
  }
  TensorId total = add(TensorKind::transient);
  run({}, {total});
  for (std::uint32_t i = count; i-- > 0;) {
    const TensorId next = add(TensorKind::transient);
    const std::uint32_t made = run({total, values[i]}, {next});
    trace.lingering.push_back({total, id_at<OperationId>(made), made + 1});
    total = next;
  }
  std::ranges::sort(trace.lingering, {}, &LingeringValue::tensor);
  Machine slow;
  slow.device_budget = Bytes{4 * 65536};
  slow.alignment = Bytes{64};
  slow.h2d.bytes_per_second = slow.d2h.bytes_per_second = 19'000'000;
  const auto made = plan_with_ways(trace, slow);
  REQUIRE(made);
  PlanningOptions only_copies;
  only_copies.ways = {.recompute = false, .compress = false, .pieces = false};
  const auto copies = plan_with_ways(trace, slow, only_copies);
  REQUIRE(copies);
  CHECK(made->ways.replays.size() > 20);
  CHECK(made->plan.predicted.iteration < copies->plan.predicted.iteration * 7 / 10);
  CHECK(copies->plan.predicted.lower_bound > copies->plan.predicted.iteration * 8 / 10);
  CHECK(bound_of_ways(trace, slow) <= made->plan.predicted.iteration);
}

/// Blocks of four operations and the way back, as in a transformer: what they make is large, and quickly made.
Trace blocks(int count, unsigned seed) {
  std::mt19937 random(seed);
  const auto between = [&](unsigned least, unsigned most) {
    return least + static_cast<unsigned>(random()) % (most - least + 1);
  };
  Trace trace;
  trace.name = "blocks";
  const auto tensor = [&](const char* name, std::uint64_t units, TensorKind kind = TensorKind::transient) {
    trace.tensors.push_back({name, Bytes{256 * units}, kind, 0});
    return static_cast<TensorId>(trace.tensors.size() - 1);
  };
  const auto operation = [&](const char* name, unsigned us, std::vector<TensorId> reads, TensorId made, bool again) {
    TraceOperation one;
    one.name = name;
    one.duration = std::chrono::microseconds{us};
    one.reads = std::move(reads);
    one.writes = {made};
    one.replayable = again;
    trace.operations.push_back(std::move(one));
    return made;
  };
  struct Block {
    TensorId input, wide, active, narrow;
  };
  std::vector<Block> blocks;
  TensorId value = tensor("input", 40, TensorKind::persistent);
  for (int i = 0; i < count; ++i) {
    const TensorId wide = operation("wide", between(300, 900), {value}, tensor("wide", 400), true);
    const TensorId active = operation("active", between(20, 60), {wide}, tensor("active", 400), true);
    const TensorId narrow = operation("narrow", between(300, 900), {active}, tensor("narrow", 100), true);
    blocks.push_back({value, wide, active, narrow});
    value = operation("add", between(10, 20), {narrow, value}, tensor("sum", 100), true);
  }
  TensorId gradient = operation("loss", 10, {value}, tensor("gradient", 100), false);
  for (int i = count; i-- > 0;) {
    const Block& block = blocks[static_cast<std::size_t>(i)];
    const auto back = [&](const char* name, unsigned us, TensorId saved, std::uint64_t units) {
      gradient = operation(name, us, {saved, gradient}, tensor("gradient", units), false);
    };
    back("add back", between(10, 30), block.narrow, 100);
    back("narrow back", between(600, 1800), block.active, 400);
    back("active back", between(30, 90), block.wide, 400);
    back("wide back", between(600, 1800), block.input, 100);
  }
  return trace;
}

TEST_CASE("the choices with the best quick ratings are rated closely: quick ratings alone mislead") {
  const Trace trace = blocks(30, 2);
  const Liveness live = analyze_liveness(trace, Bytes{256});
  Machine on = machine();
  on.alignment = Bytes{256};
  on.device_budget = Bytes{std::max(live.peak.value / 10, live.largest_bundle.value)};
  on.h2d = on.d2h = {60'000'000, nanoseconds{0}};

  const Trace plain = planning::without_ways(trace);
  const Result<planning::PlanningCase> planning = planning::make_planning_case(plain, on);
  REQUIRE(planning);
  const planning::ValueHistory history(trace);
  planning::WayChoice choice(trace, history, *planning);
  const WaysBack ways = choice.choose({.copy_price = 0.003});
  WaysOptions options;
  options.close_work = 10'000;  // of 241 operations
  planning::WayRating rating(trace, history, on, options);
  const std::size_t most = options.close_work / trace.operations.size();
  CHECK(rating.close_left() == most);
  const nanoseconds quick = rating.quick(ways);
  CHECK(rating.close(ways, quick) > quick);
  CHECK(rating.close_left() == most - 1);

  options.close_work = 0;
  options.planned.work = 2000;
  options.best.rounds = 1;
  const Result<PlanWithWays> misled = plan_with_ways(trace, on, {}, options);
  options.close_work = WaysOptions().close_work;
  const Result<PlanWithWays> close = plan_with_ways(trace, on, {}, options);
  REQUIRE(misled);
  REQUIRE(close);
  const auto compute = static_cast<double>(compute_of(trace).count());
  const auto time_of = [&](const PlanWithWays& made) {
    return static_cast<double>(made.plan.predicted.iteration.count()) / compute;
  };
  MESSAGE(time_of(*misled), " of the computation with quick ratings, ", time_of(*close), " with close ones");
  CHECK(time_of(*close) < 0.9 * time_of(*misled));
  check_plan(trace, *misled);
  check_plan(trace, *close);
}

}  // namespace swapmm::test::refinement_test
