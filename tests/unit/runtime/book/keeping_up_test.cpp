// SPDX-License-Identifier: Apache-2.0
// Plans are measured while they are followed, made anew where durations change, and left where they do not pay.
#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/backend/testing/simulated.hpp>
#include <swapmm/base/text/figures.hpp>
#include <swapmm/plan/planners.hpp>
#include <swapmm/swapmm.hpp>

#include "support/effort.hpp"
#include "support/failing_new.hpp"
#include "support/null_manager.hpp"
#include "support/small_program.hpp"

namespace {

using namespace swapmm;
using namespace swapmm::test;
using namespace swapmm::literals;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

using Durations = std::vector<nanoseconds>;

/// Eight weights of which four fit, and operations on each in turn, twice.
struct KeepingUpDesk {
  explicit KeepingUpDesk(SchedulerOptions options, simulated::Options device_options = {}, Bytes budget = 256_bytes)
      : device(device_options), manager(device, {.device_budget = budget}, Scheduler(std::move(options))) {
    for (int i = 0; i < 8; ++i) {
      weights.push_back(manager.tensor<int>({length}, "w" + std::to_string(i)));
      set(manager, weights.back(), i);
    }
  }
  ~KeepingUpDesk() {
    for (std::size_t i = 0; i < 8; ++i) CHECK(holds(weights[i], static_cast<int>(i) + 2 * rounds));
    for (const std::string& violation : device.violations()) FAIL_CHECK(violation);
  }

  void grow(std::size_t which, nanoseconds time) {
    manager.run("grow", updates(weights[which]), [&](auto& op) {
      const auto to = op[weights[which]];
      op.queue().launch("grow", time, {Touch::read(to), Touch::write(to)}, [to] {
        for (int& element : to) ++element;
      });
    });
  }
  void iterate(const Durations& durations, int times = 1, std::string_view name = "train") {
    for (int i = 0; i < times; ++i) {
      auto iteration = manager.iteration(name);
      for (std::size_t k = 0; k < 16; ++k) grow(k % 8, durations[k]);
      ++rounds;
    }
  }
  /// Of virtual time, from now until all of it has ended, for each of `times` iterations.
  nanoseconds time_of(const Durations& durations, int times) {
    manager.synchronize();
    const nanoseconds start = device.now();
    iterate(durations, times);
    manager.synchronize();
    return (device.now() - start) / times;
  }
  [[nodiscard]] Report report() { return manager.report(); }
  [[nodiscard]] PlanSummary plan() { return report().plans.at(0); }

  Simulated device;
  MemoryManager<Simulated> manager;
  std::vector<Tensor<int, Simulated>> weights;
  int rounds = 0;
};

/// Copies take 64 ns: the program waits for them, by a good plan a little less than on demand.
Durations even(nanoseconds each = nanoseconds{20}) { return Durations(16, each); }
Durations durations_of(std::initializer_list<int> list) {
  Durations durations;
  for (const int each : list) durations.emplace_back(each);
  return durations;
}
/// Two ways to take time, each of which wants its copies elsewhere: by the plan for the other one it takes longer.
const Durations first_way = durations_of({10, 10, 10, 10, 10, 10, 10, 140, 120, 10, 10, 10, 10, 10, 10, 10});
const Durations second_way = durations_of({10, 10, 10, 10, 10, 10, 10, 140, 10, 10, 10, 10, 10, 140, 10, 140});

SchedulerOptions options_of(std::string planner, std::size_t sample_every = 8) {
  SchedulerOptions options;
  options.planner = std::move(planner);
  options.planning_time = milliseconds{0};
  options.sample_every = sample_every;
  options.trial_iterations = 4;
  return options;
}

std::string plan_with(const std::string& planner, const Durations& durations) {
  SchedulerOptions options = options_of(planner);
  options.trial_iterations = 0;
  KeepingUpDesk desk(options);
  desk.iterate(durations, 3);
  std::ostringstream out;
  desk.manager.scheduler().save_plan("train", out);
  return out.str();
}

}  // namespace

TEST_CASE("rounds by a plan are measured on the device, beside what was predicted") {
  KeepingUpDesk desk(options_of("excess-overlap"));
  desk.iterate(even(), 12);
  const PlanSummary plan = desk.plan();
  CHECK(plan.state == PlanState::settled);
  CHECK(plan.measured == plan.predicted.iteration);
  CHECK(plan.on_demand > plan.measured);
  CHECK(desk.report().plan_starts == 1);
  CHECK(desk.report().notes.empty());
}

TEST_CASE("a plan that is slower than on demand is left after its trial, and a note has both times") {
  KeepingUpDesk desk(options_of("per-operation"));
  desk.iterate(even(), 30);
  const PlanSummary plan = desk.plan();
  CHECK(plan.state == PlanState::left);
  CHECK(plan.measured > plan.on_demand);
  CHECK(plan.on_demand.count() > 0);
  REQUIRE(desk.report().notes.size() == 1);
  CHECK(says(desk.report().notes[0], {"\"train\"", "per-operation", text::time_text(plan.measured), "on demand",
                                      text::time_text(plan.on_demand)}));
  // Two rounds that do not count, two that do, and those that the host is ahead.
  CHECK(desk.report().iterations_followed >= 4);
  CHECK(desk.report().iterations_followed <= 7);
  CHECK(desk.report().iterations_on_demand >= 23);
  CHECK(desk.report().plan_starts == 1);
  CHECK(desk.report().divergences == 0);
}

TEST_CASE("a new plan stays where there is no trial, however slow it is") {
  SchedulerOptions options = options_of("per-operation");
  options.trial_iterations = 0;
  KeepingUpDesk desk(options);
  desk.iterate(even(), 30);
  CHECK(desk.report().iterations_followed == 28);
  CHECK(desk.report().notes.empty());
  CHECK(desk.plan().state == PlanState::settled);
}

TEST_CASE("where on demand has won the program is no longer timed but now and then, and runs as fast as it can") {
  KeepingUpDesk never({.observe = 0});
  never.iterate(even(), 12);
  KeepingUpDesk desk(options_of("per-operation", 16));
  desk.iterate(even(), 15);
  REQUIRE(desk.plan().state == PlanState::left);
  CHECK(desk.time_of(even(), 3) == never.time_of(even(), 3));
}

TEST_CASE("a loaded plan that loses is replaced by one of the scheduler's own planner") {
  const std::string bad = plan_with("per-operation", even());
  KeepingUpDesk desk(options_of("excess-overlap", 8));
  std::istringstream in(bad);
  desk.manager.scheduler().load_plan("train", in);
  desk.iterate(even(), 15);
  REQUIRE(desk.plan().state == PlanState::left);
  CHECK(desk.plan().planner == "per-operation");
  desk.iterate(even(), 30);
  CHECK(desk.plan().state == PlanState::settled);
  CHECK(desk.plan().planner == "excess-overlap");
  CHECK(desk.plan().measured < desk.plan().on_demand);
  CHECK(desk.report().plans_remade == 1);
  const std::uint64_t followed = desk.report().iterations_followed;
  desk.iterate(even(), 5);
  CHECK(desk.report().iterations_followed == followed + 5);
}

TEST_CASE("without trials, a plan that is loaded or made anew takes the place of the one that is followed") {
  SchedulerOptions options = options_of("excess-overlap", 8);
  options.trial_iterations = 0;
  KeepingUpDesk desk(options);
  desk.iterate(even(), 8);
  REQUIRE(desk.report().iterations_followed > 0);
  std::istringstream in(plan_with("per-operation", even()));
  desk.manager.scheduler().load_plan("train", in);
  const Report before = desk.report();
  desk.iterate(even(), 3);
  CHECK(desk.report().plan_starts == before.plan_starts + 1);
  CHECK(desk.report().iterations_followed == before.iterations_followed + 3);
  CHECK(desk.plan().planner == "per-operation");

  KeepingUpDesk anew(options);
  anew.iterate(first_way, 30);
  const std::uint64_t starts = anew.report().plan_starts;
  anew.iterate(second_way, 60);
  CHECK(anew.report().plans_remade > 0);
  CHECK(anew.report().plan_starts > starts);
  CHECK(anew.time_of(second_way, 4) <= anew.plan().predicted.iteration * 102 / 100);  // it begins and ends drained
}

TEST_CASE("a plan that is loaded in place of a faster one is tried, and left for that one") {
  const std::string bad = plan_with("per-operation", even());
  KeepingUpDesk desk(options_of("excess-overlap", 8));
  desk.iterate(even(), 12);
  const Plan good = *desk.manager.scheduler().plan("train");
  std::istringstream in(bad);
  desk.manager.scheduler().load_plan("train", in);
  desk.iterate(even(), 12);
  CHECK(desk.manager.scheduler().plan("train")->commands == good.commands);
  CHECK(desk.plan().state == PlanState::settled);
  REQUIRE(desk.report().notes.size() == 1);
  CHECK(says(desk.report().notes[0], {"per-operation", "the plan before it", "gone back"}));
  CHECK(desk.report().plan_starts == 3);
}

TEST_CASE("a program whose durations change is planned again, and runs as if planned so from the start") {
  KeepingUpDesk knew(options_of("excess-overlap"));
  knew.iterate(second_way, 20);
  SchedulerOptions stubborn = options_of("excess-overlap");
  stubborn.replan_above = 0;
  KeepingUpDesk never(stubborn);
  KeepingUpDesk desk(options_of("excess-overlap"));
  for (KeepingUpDesk* const each : {&never, &desk}) {
    each->iterate(first_way, 30);
    each->iterate(second_way, 60);
  }
  const nanoseconds best = knew.time_of(second_way, 4);
  // Close to it: of plans that differ by less than noise the one before stays.
  const nanoseconds stubborn_time = never.time_of(second_way, 4);
  const nanoseconds time = desk.time_of(second_way, 4);
  CHECK(stubborn_time > best);
  CHECK(time - best < (stubborn_time - best) / 2);
  CHECK(desk.report().plans_remade >= 1);
  CHECK(never.report().plans_remade == 0);
  CHECK(desk.plan().measured == desk.plan().predicted.iteration);
}

TEST_CASE("with deferred planning the new plan waits for somebody to make it, and the old one is followed meanwhile") {
  SchedulerOptions options = options_of("excess-overlap");
  options.planning = Planning::deferred;
  KeepingUpDesk desk(options);
  desk.iterate(first_way, 3);
  desk.manager.scheduler().planning_job()->run();
  desk.iterate(first_way, 30);
  CHECK(!desk.manager.scheduler().planning_job());
  desk.iterate(second_way, 40);
  const std::uint64_t followed = desk.report().iterations_followed;
  CHECK(followed == 70);
  std::optional<PlanningJob> job = desk.manager.scheduler().planning_job();
  REQUIRE(job);
  job->run();
  desk.iterate(second_way, 20);
  CHECK(desk.report().iterations_followed == followed + 20);
  CHECK(desk.report().plan_starts == 2);
}

TEST_CASE("a job that one thread runs is offered to no other one") {
  Scheduler* scheduler = nullptr;
  std::optional<bool> offered;
  SchedulerOptions options = options_of("excess-overlap");
  options.planning = Planning::deferred;
  options.planner = [&](const Trace& trace, const Machine& machine, const PlanningOptions& limits) {
    offered = scheduler->planning_job().has_value();
    return swapmm::make_plan("belady", trace, machine, limits);
  };
  KeepingUpDesk desk(options);
  scheduler = &desk.manager.scheduler();
  desk.iterate(first_way, 3);
  std::optional<PlanningJob> job = scheduler->planning_job();
  std::optional<PlanningJob> same = scheduler->planning_job();
  REQUIRE(job);
  REQUIRE(same);  // nobody runs it yet
  job->run();
  CHECK(offered == false);
  same->run();  // nothing
  desk.iterate(first_way, 30);
  CHECK(desk.report().iterations_followed > 0);
}

TEST_CASE("asking a planner again that has nothing better to say becomes rarer and rarer") {
  SchedulerOptions options = options_of("excess-overlap", 4);
  options.replan_above = 1e-9;
  KeepingUpDesk desk(options);
  Durations durations = even();
  for (int i = 0; i < 400; ++i) {
    durations[0] = nanoseconds{100 + i};  // never as predicted
    desk.iterate(durations);
  }
  const Report report = desk.report();
  CHECK(report.sampled_rounds >= 90);
  CHECK(report.plans_remade >= 3);
  CHECK(report.plans_remade <= 8);  // after 1, 2, 4, 8, 16, 32 samples
  CHECK(report.plan_starts <= 3);
}

TEST_CASE("sampled rounds take no more of the device's time, and no waits of the host") {
  std::vector<nanoseconds> ends;
  std::vector<std::uint64_t> waits;
  for (const std::size_t every : {0U, 1U, 3U}) {
    KeepingUpDesk desk(options_of("excess-overlap", every));
    desk.iterate(even(), 40);
    waits.push_back(desk.report().host_waits);
    CHECK(desk.report().iterations_followed == 38);
    CHECK((desk.report().sampled_rounds > 5) == (every != 0));
    desk.manager.synchronize();
    ends.push_back(desk.device.now());
  }
  CHECK(ends[1] == ends[0]);
  CHECK(ends[2] == ends[0]);
  CHECK(waits[1] == waits[0]);
  CHECK(waits[2] == waits[0]);
}

TEST_CASE("sampled rounds leave every value as it is, in any order of the device's steps") {
  std::uint64_t sampled = 0;
  const std::uint64_t seeds = test::effort(20, 10);
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    simulated::Options device_options;
    device_options.order = simulated::Order::uniform;
    device_options.seed = seed;
    device_options.pieces = 3;
    SchedulerOptions options = options_of("excess-overlap", 2);
    options.replan_above = 1e-9;
    options.trial_iterations = seed % 3;
    KeepingUpDesk desk(options, device_options);
    desk.iterate(seed % 2 == 0 ? first_way : second_way, 10);
    desk.iterate(seed % 2 != 0 ? first_way : second_way, 20);
    sampled += desk.report().sampled_rounds;
  }
  CHECK(sampled > 3 * seeds);
}

TEST_CASE("sampled rounds allocate nothing and make no object of the backend") {
  NullBackend device;
  SchedulerOptions options = options_of("belady", 2);
  options.replan_above = 0;  // what a planner does is another matter
  MemoryManager<NullBackend> manager(device, {.device_budget = 320_bytes}, Scheduler(options));
  std::vector<Tensor<float, NullBackend>> weights;
  for (int i = 0; i < 8; ++i) {
    weights.push_back(manager.tensor<float>({16}, "weight"));
    manager.run("init", writes(weights.back()), [](auto&) {});
  }
  const auto iterate = [&] {
    auto iteration = manager.iteration("train");
    for (auto& weight : weights) manager.run("step", updates(weight), [](auto&) {});
  };
  for (int i = 0; i < 20; ++i) iterate();
  const std::uint64_t sampled = manager.report().sampled_rounds;
  REQUIRE(sampled > 0);
  const std::uint64_t objects = device.counters().objects_made;
  const std::uint64_t allocated = allocations();
  for (int i = 0; i < 100; ++i) iterate();
  CHECK(allocations() == allocated);
  CHECK(device.counters().objects_made == objects);
  CHECK(manager.report().sampled_rounds == sampled + 50);
}

TEST_CASE("the iteration as last observed has the durations of the samples") {
  KeepingUpDesk desk(options_of("excess-overlap", 4));
  desk.iterate(even(), 8);
  desk.iterate(even(nanoseconds{300}), 30);
  const std::optional<Trace> trace = desk.manager.scheduler().trace("train");
  REQUIRE(trace);
  for (const TraceOperation& operation : trace->operations) {
    CHECK(operation.duration == nanoseconds{300});
  }
}

TEST_CASE("another program under the same name is timed before it is planned, though on demand had won there") {
  KeepingUpDesk desk(options_of("per-operation", 64));
  desk.iterate(even(), 15);
  REQUIRE(desk.plan().state == PlanState::left);
  for (int i = 0; i < 8; ++i) {
    auto iteration = desk.manager.iteration("train");
    for (std::size_t k = 0; k < 16; ++k) desk.grow(k / 2, nanoseconds{500});
    ++desk.rounds;
  }
  REQUIRE(desk.report().plans.size() == 2);
  CHECK(desk.plan().predicted.compute == 16 * nanoseconds{500});
}
