// SPDX-License-Identifier: Apache-2.0
// Which rounds are timed and sampled, and which times are left out.
#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <swapmm/backend/testing/simulated.hpp>
#include <swapmm/runtime/core/round_measurement.hpp>
#include <swapmm/runtime/core/session_state.hpp>
#include <swapmm/swapmm.hpp>

#include "support/failing_new.hpp"
#include "support/measured_book.hpp"
#include "support/null_backend.hpp"
#include "support/small_program.hpp"
#include "support/weight_desk.hpp"

using namespace swapmm;
using namespace swapmm::test;
using namespace swapmm::literals;
using std::chrono::nanoseconds;

namespace {

SchedulerOptions measuring(std::size_t sample_every, std::size_t trial_iterations = 4) {
  SchedulerOptions options;
  options.planner = "excess-overlap";
  options.sample_every = sample_every;
  options.trial_iterations = trial_iterations;
  options.replan_above = 0;
  return options;
}

/// A program whose rounds are measured.
struct MeasuredDesk : WeightDesk {
  explicit MeasuredDesk(const SchedulerOptions& options, simulated::Options device_options = {})
      : WeightDesk(device_options, {.device_budget = 256_bytes}, Scheduler(options)) {}
  void iterate(int times, std::string_view name = "train") {
    for (int i = 0; i < times; ++i) increase_all(name);
  }
  /// Each begins when the device has ended the one before, so that its times are known then.
  void iterate_slowly(int times, std::string_view name = "train") {
    for (int i = 0; i < times; ++i) {
      iterate(1, name);
      manager.synchronize();
    }
  }
  /// The program of iterate(), and one operation more.
  void iterate_longer() {
    const auto iteration = manager.iteration("train");
    for (auto& weight : weights) increase(manager, weight, 1);
    increase(manager, weights[0], 1);
  }
  [[nodiscard]] PlanSummary plan(std::size_t which = 0) { return report().plans.at(which); }
  [[nodiscard]] std::uint64_t sampled() { return report().sampled_rounds; }
};

/// A device whose times are what a test says, or not known.
class ClockedBackend : public NullBackend {
 public:
  struct Clock {
    std::optional<nanoseconds> time = nanoseconds{1000};  ///< between any two events
    std::uint64_t answers = ~std::uint64_t{0};            ///< after so many no time is known
    std::uint64_t switches = 0;                           ///< calls of set_timing()
  };
  [[nodiscard]] Clock& clock() { return *clock_; }
  void set_timing(bool) { ++clock_->switches; }
  [[nodiscard]] std::optional<nanoseconds> elapsed(const Event&, const Event&) {
    if (clock_->answers == 0) return std::nullopt;
    --clock_->answers;
    return clock_->time;
  }

 private:
  std::shared_ptr<Clock> clock_ = std::make_shared<Clock>();
};
static_assert(Backend<ClockedBackend>);

struct ClockedDesk {
  explicit ClockedDesk(const SchedulerOptions& options)
      : manager(device, {.device_budget = 256_bytes}, Scheduler(options)) {
    for (int i = 0; i < 6; ++i) {
      weights.push_back(manager.tensor<int>({length}, "w" + std::to_string(i)));
      manager.run("make", writes(weights.back()), [](auto&) {});
    }
  }
  void iterate(int times = 1, std::string_view name = "train") {
    for (int i = 0; i < times; ++i) {
      const auto iteration = manager.iteration(name);
      for (auto& weight : weights) manager.run("step", updates(weight), [](auto&) {});
    }
  }
  [[nodiscard]] PlanSummary plan() { return manager.report().plans.at(0); }

  ClockedBackend device;
  MemoryManager<ClockedBackend> manager;
  std::vector<Tensor<int, ClockedBackend>> weights;
};

/// The measurement alone, of a program that runs on demand. Between any two events lies a microsecond.
struct DirectDesk {
  explicit DirectDesk(bool lazy = false) : device(lazy) {}

  NullBackend device;
  MeasuredBook book;
  runtime::SessionState<NullBackend> state{device, {.device_budget = 256_bytes}};
  runtime::RoundMeasurement<NullBackend> measurement{state, book.book};
};

}  // namespace

TEST_CASE("of rounds that the device has not ended at most eight are timed") {
  DirectDesk desk(true);
  for (int i = 0; i < 9; ++i) {
    desk.measurement.begin_iteration("train", true);
    desk.measurement.end_iteration("train");
  }
  CHECK(desk.device.counters().records == 2 * 8);
}

TEST_CASE("a round that begins again is timed from there") {
  DirectDesk desk;
  desk.measurement.begin_iteration("train", true);
  desk.measurement.begin_iteration("train", true);
  CHECK(desk.device.counters().records == 2);
}

TEST_CASE("the time of an iteration that was not learned from is not taken for the next one, which was not timed") {
  DirectDesk desk;
  const std::uint64_t id = desk.book.check();  // an observed iteration took 500 ns, and any more time counts
  const auto iterate = [&](bool timed, std::uint64_t learned) {
    desk.measurement.begin_iteration("train", timed);
    desk.measurement.end_iteration("train");
    desk.measurement.name_last(learned);
  };
  iterate(true, 0);
  iterate(false, id);
  desk.measurement.collect("train");
  CHECK(desk.book.report().plans.at(0).on_demand == nanoseconds{500});
  iterate(true, id);
  desk.measurement.collect("train");
  CHECK(desk.book.report().plans.at(0).on_demand == nanoseconds{1000});
}

TEST_CASE("a cycle of two iterations is timed as a whole") {
  MeasuredDesk desk(measuring(64));
  for (int i = 0; i < 40; ++i) {
    const auto iteration = desk.manager.iteration("train");
    for (auto& weight : desk.weights) increase(desk.manager, weight, 1);
    if (i % 2 == 1) increase(desk.manager, desk.weights[0], 1);
  }
  const PlanSummary plan = desk.plan();
  REQUIRE(plan.iterations_per_cycle == 2);
  REQUIRE(plan.state == PlanState::settled);
  CHECK(plan.measured == plan.predicted.iteration);
}

TEST_CASE("plans that begin anew in each iteration are timed and sampled") {
  MeasuredDesk desk(measuring(3));
  for (int i = 0; i < 30; ++i) {
    desk.iterate(1, "a");
    desk.iterate(1, "b");
    desk.manager.synchronize();
  }
  REQUIRE(desk.report().plans.size() == 2);
  CHECK(desk.report().plan_starts > 20);
  for (std::size_t i = 0; i < 2; ++i) {
    CHECK(desk.plan(i).measured > nanoseconds{0});
    CHECK(desk.plan(i).state == PlanState::settled);
  }
  CHECK(desk.sampled() > 4);
}

TEST_CASE("where on demand has won, the host waits for nothing while the program swaps on demand") {
  SchedulerOptions options = measuring(0);
  options.planner = "per-operation";
  MeasuredDesk desk(options, only_when_waited_for());
  desk.iterate(20);
  REQUIRE(desk.plan().state == PlanState::left);
  desk.iterate(1);
  const std::uint64_t waits = desk.report().host_waits;
  desk.iterate(3);
  CHECK(desk.report().host_waits == waits);
}

TEST_CASE("a round that left its plan is no measure of swapping on demand") {
  SchedulerOptions options = measuring(64, 30);
  options.observe = 1;
  MeasuredDesk desk(options);
  desk.iterate_slowly(10);
  REQUIRE(desk.plan().state == PlanState::on_trial);
  REQUIRE(desk.plan().measured > nanoseconds{0});  // so the next round is timed too
  desk.iterate_longer();                           // leaves the plan at its end
  (void)desk.manager.iteration("train");
  REQUIRE(desk.report().plans.size() == 2);
  for (std::size_t i = 0; i < 2; ++i) {
    if (desk.plan(i).operations == 7) CHECK(desk.plan(i).on_demand == nanoseconds{0});
  }
}

TEST_CASE("a sample that was given up with its plan does not keep later rounds from being sampled") {
  MeasuredDesk desk(measuring(1, 0));
  desk.iterate_slowly(10);
  const std::uint64_t before = desk.sampled();
  CHECK(before > 5);
  {
    const auto iteration = desk.manager.iteration("train");
    increase(desk.manager, desk.weights[0], 1);
    const auto& sampler = desk.weights[0].ref().core->session_state()->store.sampler;
    CHECK(sampler.active());
    increase(desk.manager, desk.weights[5], 1, "surprise");
    CHECK(!sampler.active());
  }
  desk.iterate_slowly(10);
  CHECK(desk.sampled() > before + 5);
}

TEST_CASE("rounds in a profile are neither timed nor sampled") {
  for (const bool starts_within : {false, true}) {
    MeasuredDesk desk(measuring(64));
    desk.iterate(2);
    for (int i = 0; i < 8; ++i) {
      if (!starts_within) desk.manager.start_profile();
      {
        const auto iteration = desk.manager.iteration("train");
        if (starts_within) desk.manager.start_profile();
        for (auto& weight : desk.weights) increase(desk.manager, weight, 1);
      }
      (void)desk.manager.stop_profile();
    }
    desk.iterate_slowly(1);
    CHECK(desk.report().iterations_followed == 9);
    CHECK(desk.plan().measured == nanoseconds{0});
    CHECK(desk.plan().state == PlanState::on_trial);
    desk.iterate_slowly(6);
    CHECK(desk.plan().state == PlanState::settled);
  }
}

TEST_CASE("a plan that begins in an iteration which a profile has a part of is not sampled there") {
  for (int part = 0; part < 3; ++part) {  // all of it, its end, its beginning
    CAPTURE(part);
    MeasuredDesk desk(measuring(1, 0));
    for (int i = 0; i < 6; ++i) {
      desk.iterate_slowly(1, "a");
      desk.iterate_slowly(1, "b");
    }
    (void)desk.manager.iteration("none");
    const std::uint64_t before = desk.sampled();
    CHECK(before > 0);
    for (int i = 0; i < 6; ++i) {
      if (part != 1) desk.manager.start_profile();
      {
        const auto iteration = desk.manager.iteration(i % 2 == 0 ? "a" : "b");
        if (part == 1) desk.manager.start_profile();
        if (part == 2) (void)desk.manager.stop_profile();
        for (auto& weight : desk.weights) increase(desk.manager, weight, 1);
      }
      if (part != 2) (void)desk.manager.stop_profile();
      desk.manager.synchronize();
    }
    (void)desk.manager.iteration("none");
    CHECK(desk.sampled() == before);
  }
}

TEST_CASE("a plan that begins behind the end of a profile is not sampled though the round before wanted a sample") {
  MeasuredDesk desk(measuring(1, 0));
  for (int i = 0; i < 6; ++i) {
    desk.iterate_slowly(1, "a");
    desk.iterate_slowly(1, "b");
  }
  desk.manager.start_profile();
  std::uint64_t before = 0;
  {
    const auto iteration = desk.manager.iteration("a");
    before = desk.sampled();
    (void)desk.manager.stop_profile();
    for (auto& weight : desk.weights) increase(desk.manager, weight, 1);
  }
  desk.manager.synchronize();
  (void)desk.manager.iteration("none");
  CHECK(before > 0);
  CHECK(desk.sampled() == before);
}

TEST_CASE("times that are not known when the budget changes are forgotten") {
  const auto there_and_back = [](MeasuredDesk& desk) {
    desk.manager.set_budget(320_bytes);
    desk.manager.set_budget(256_bytes);
  };
  SUBCASE("of rounds") {
    MeasuredDesk desk(measuring(64), only_when_waited_for());
    desk.iterate(5);  // two on demand, two that do not count, and one that was timed
    REQUIRE(desk.plan().measured == nanoseconds{0});
    there_and_back(desk);
    desk.iterate(1);
    CHECK(desk.plan().measured == nanoseconds{0});
  }
  SUBCASE("of samples") {
    MeasuredDesk desk(measuring(1, 0), only_when_waited_for());
    desk.iterate(8);
    desk.manager.synchronize();
    const std::uint64_t before = desk.sampled();
    there_and_back(desk);
    desk.iterate(1);
    CHECK(desk.sampled() == before);
    desk.iterate_slowly(6);
    CHECK(desk.sampled() > before);
  }
}

TEST_CASE("for samples two events are made for each operation and copy of a plan, and for some more") {
  std::vector<std::uint64_t> made;
  std::size_t works = 0;
  for (const std::size_t sample_every : {0U, 64U}) {
    MeasuredDesk desk(measuring(sample_every));
    for (int i = 0; i < 5; ++i) {
      const auto iteration = desk.manager.iteration("train");
      auto local = desk.manager.tensor<int>({length}, "local");
      set(desk.manager, local, 1);
      for (auto& weight : desk.weights) accumulate(desk.manager, local, weight);
    }
    made.push_back(desk.device.counters().events.made);
    const auto plan = desk.manager.scheduler().plan("train");
    REQUIRE(plan);
    std::size_t copies = 0;
    for (const Command& command : plan->commands) {
      if (command.kind == CommandKind::swap_in || command.kind == CommandKind::swap_out) ++copies;
    }
    REQUIRE(copies > 0);
    works = 1 + desk.weights.size() + copies + 16;
  }
  CHECK(made[1] - made[0] == 2 * works);
}

TEST_CASE("samples tell how fast each link is now") {
  ClockedDesk desk(measuring(1, 0));
  desk.iterate(6);
  const Machine before = desk.manager.machine();
  desk.device.clock().time = nanoseconds{250};
  desk.iterate(12);
  const Machine after = desk.manager.machine();
  CHECK(desk.manager.report().sampled_rounds > 4);
  CHECK(after.h2d != before.h2d);
  CHECK(after.d2h != before.d2h);
}

TEST_CASE("each link is sampled by its own copies") {
  simulated::Options device_options;
  device_options.d2h.latency = nanoseconds{500};
  MeasuredDesk desk(measuring(1, 0), device_options);
  desk.iterate_slowly(3);
  const Machine before = desk.manager.machine();
  CHECK(before.h2d != before.d2h);
  desk.iterate_slowly(8);
  CHECK(desk.sampled() > 4);
  const Machine after = desk.manager.machine();
  CHECK(after.h2d == before.h2d);
  CHECK(after.d2h == before.d2h);
}

TEST_CASE("a sample of which only the first time is known tells that one, and nothing of the links") {
  ClockedDesk desk(measuring(1, 0));
  desk.iterate(6);
  const Machine before = desk.manager.machine();
  const std::uint64_t sampled = desk.manager.report().sampled_rounds;
  for (int i = 0; i < 4; ++i) {
    desk.device.clock().answers = 1;
    desk.iterate();
  }
  CHECK(desk.manager.report().sampled_rounds == sampled + 4);
  CHECK(desk.manager.machine().h2d == before.h2d);
  CHECK(desk.manager.machine().d2h == before.d2h);
}

TEST_CASE("a sample without times is none") {
  ClockedDesk desk(measuring(1, 0));
  desk.iterate(3);
  const Machine before = desk.manager.machine();
  desk.device.clock().time.reset();
  const std::uint64_t sampled = desk.manager.report().sampled_rounds;
  desk.iterate(3);
  CHECK(desk.manager.report().sampled_rounds <= sampled + 1);
  CHECK(desk.manager.machine().h2d == before.h2d);
  CHECK(desk.manager.machine().d2h == before.d2h);
}

TEST_CASE("a device that told no times four times in a row is not asked again, and needs no events for samples") {
  std::vector<std::uint64_t> objects;
  for (const std::size_t sample_every : {0U, 64U}) {
    SchedulerOptions options = measuring(sample_every);
    options.observe = 6;
    ClockedDesk desk(options);
    desk.device.clock().time.reset();
    desk.iterate(3);
    const std::uint64_t before = desk.device.clock().switches;
    desk.iterate(1);
    const std::uint64_t timed = desk.device.clock().switches - before;
    const std::uint64_t blind = desk.device.clock().switches;
    desk.iterate(1);
    CHECK(desk.device.clock().switches - blind == timed - 2);  // those around the beginning of a round
    desk.iterate(1);
    const std::uint64_t made = desk.device.counters().objects_made;
    desk.iterate(2);
    REQUIRE(desk.manager.report().iterations_followed == 2);
    objects.push_back(desk.device.counters().objects_made - made);
    CHECK(desk.plan().state == PlanState::settled);
  }
  CHECK(objects[0] == objects[1]);
}

TEST_CASE("a device that tells times only now and then is asked on") {
  ClockedDesk desk(measuring(64, 30));
  for (int i = 0; i < 30; ++i) {
    desk.device.clock().time = i % 3 == 0 ? std::optional(nanoseconds{1000}) : std::nullopt;
    desk.iterate();
  }
  CHECK(desk.plan().state == PlanState::on_trial);
  CHECK(desk.plan().measured == nanoseconds{1000});
}

TEST_CASE("on demand, operations on what is on the device and iterations without plans allocate nothing") {
  SchedulerOptions options = measuring(0);
  options.observe = 0;
  ClockedDesk desk(options);
  const auto step = [&] { desk.manager.run("step", updates(desk.weights[5]), [](auto&) {}); };
  step();
  const std::uint64_t before = allocations();
  for (int i = 0; i < 5; ++i) step();
  CHECK(allocations() == before);
  for (const char* name : {"a", "b", "c", "d", "a"}) (void)desk.manager.iteration(name);
  CHECK(allocations() == before);
  const auto iterate = [&](int times) {
    for (int i = 0; i < times; ++i) {
      const auto iteration = desk.manager.iteration("train");
      step();
    }
  };
  iterate(2);
  const std::uint64_t warm = allocations();
  iterate(200);
  CHECK(allocations() == warm);
}
