// SPDX-License-Identifier: Apache-2.0
// Managers that share the way to the host: one plan for all of them.

#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <swapmm/error.hpp>

#include "support/side_by_side.hpp"

namespace swapmm::test::joint_plans_test {

using namespace std::chrono_literals;

constexpr std::uint64_t link_speed = 1'000'000'000;

struct Setup {
  std::vector<SideProgram> programs;
  LinkCapacities capacities;
  double part = 0.4;  // of the need
  bool together = true;
  bool one_clock = true;
  std::optional<LinkCapacities> told{};  // instead of what is so
  SchedulerOptions scheduler{};
};

/// Programs that gain by a joint plan in which copies take turns.
Setup three_programs() {
  const SideProgram program{.layers = 12, .forward = 40us, .backward = 80us};
  return {{program, program, program}, {.both_ways = link_speed}, 0.5};
}
/// `always`: what is planned is followed, whether it is faster or not, and no clock says what is found.
Setup two_programs(bool always = false) {
  Setup setup{{{}, {}}, {.to_devices = link_speed, .from_devices = link_speed}};
  if (always) {
    setup.scheduler.planning_limit = 0ms;
    setup.scheduler.trial_iterations = 0;
  }
  return setup;
}

/// All devices, one iteration of each in turn.
class Devices {
 public:
  using Change = std::function<void(std::size_t device, SchedulerOptions& options)>;

  explicit Devices(const Setup& setup, const Change& change = nullptr)
      : setup_(setup),
        change_(change),
        clock_(std::make_shared<simulated::SharedClock>(setup.capacities)),
        links(std::make_shared<SharedLinks>(setup.told.value_or(setup.capacities))) {
    for (const SideProgram& program : setup.programs) add(program);
  }
  void add(const SideProgram& program, Scheduler* scheduler = nullptr) {
    simulated::Options device;
    device.device_bytes = program.need();
    device.h2d.bytes_per_second = device.d2h.bytes_per_second = link_speed;
    if (setup_.one_clock) device.clock = clock_;
    Options options;
    options.device_budget = Bytes{static_cast<std::uint64_t>(setup_.part * static_cast<double>(program.need().value))};
    if (setup_.together) options.shared_links = links;
    SchedulerOptions planning = setup_.scheduler;
    if (change_) change_(runs.size(), planning);
    runs.push_back(
        std::make_unique<SideRun>(program, device, options, scheduler != nullptr ? *scheduler : Scheduler(planning)));
    models.push_back(std::make_unique<SideModel>(program));
  }
  void iterate(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      ++seed_;
      for (auto& run : runs) run->iterate(seed_);
      for (auto& model : models) model->iterate(seed_);
    }
  }
  /// Of an iteration of all, after the first ones.
  std::chrono::nanoseconds time(std::size_t count) {
    for (auto& run : runs) run->device.finish();
    const auto begin = clock_->now();
    iterate(count);
    for (auto& run : runs) run->device.finish();
    return (clock_->now() - begin) / static_cast<std::int64_t>(count);
  }
  void check_values() {
    for (std::size_t i = 0; i < runs.size(); ++i) {
      CHECK(runs[i]->weights() == models[i]->weights());
      CHECK(runs[i]->device.violations() == std::vector<std::string>{});
    }
  }
  /// Whether it follows a joint plan, or has gone back from one.
  [[nodiscard]] bool tried(std::size_t run) {
    const Report report = runs[run]->manager.report();
    bool has_one = false;
    for (const PlanSummary& plan : report.plans) has_one = has_one || plan.devices > 1;
    for (const std::string& note : report.notes)
      has_one = has_one || note.find("with other devices") != std::string::npos;
    return has_one;
  }
  [[nodiscard]] PlanSummary plan(std::size_t run) {
    const Report report = runs[run]->manager.report();
    REQUIRE(report.plans.size() == 1);
    return report.plans.front();
  }

 private:
  Setup setup_;
  Change change_;
  std::shared_ptr<simulated::SharedClock> clock_;
  std::uint32_t seed_ = 0;

 public:
  std::shared_ptr<SharedLinks> links;
  std::vector<std::unique_ptr<SideRun>> runs;
  std::vector<std::unique_ptr<SideModel>> models;
};

TEST_CASE("managers that share links follow one plan, faster than each its own") {
  Setup setup = three_programs();
  std::optional<std::chrono::nanoseconds> alone;
  for (const bool together : {false, true}) {
    CAPTURE(together);
    setup.together = together;
    Devices devices(setup);
    devices.iterate(30);
    const std::chrono::nanoseconds time = devices.time(20);
    devices.check_values();
    for (std::size_t i = 0; i < devices.runs.size(); ++i) {
      CHECK(devices.plan(i).devices == (together ? 3 : 1));
      CHECK(devices.plan(i).state == PlanState::settled);
    }
    CHECK(devices.links->joint_plans() == (together ? 1 : 0));
    CHECK(devices.links->managers() == (together ? 3 : 0));
    if (!together) {
      alone = time;
      continue;
    }
    CHECK(time < 0.95 * *alone);
    const Report last = devices.runs.back()->manager.report();
    CHECK(last.turns_taken > 0);
    CHECK(last.turns_missed == 0);
    CHECK(devices.runs.front()->manager.report().turns_taken == 0);  // the first one waits for nobody
  }
}

TEST_CASE("a joint plan is made for links as they are alone, though copies were timed beside those of others") {
  Setup setup = two_programs(true);
  const SideProgram program{.layers = 6, .forward = 1us, .backward = 1us};  // copies nearly all the time
  setup.programs = {program, program, program, program};
  setup.scheduler.sample_every = 3;
  Devices devices(setup);
  devices.iterate(40);
  devices.check_values();
  for (const auto& run : devices.runs) {
    const auto plan = run->manager.scheduler().plan("train");
    REQUIRE(plan != nullptr);
    CHECK(plan->machine.h2d.bytes_per_second > 0.95 * link_speed);
    CHECK(plan->machine.d2h.bytes_per_second > 0.95 * link_speed);
  }
}

TEST_CASE("plans of devices that cannot wait for each other are made together without turns") {
  Setup setup = three_programs();
  setup.one_clock = false;
  Devices devices(setup);
  devices.iterate(40);
  devices.check_values();
  CHECK(devices.links->joint_plans() >= 1);
  for (std::size_t i = 0; i < devices.runs.size(); ++i) {
    CHECK(devices.tried(i));
    const Report report = devices.runs[i]->manager.report();
    CHECK(report.turns_taken + report.turns_missed == 0);
  }
}

TEST_CASE("a joint plan that turns out to be slower is left by all of its managers") {
  Setup setup = two_programs();
  setup.told = LinkCapacities{.both_ways = link_speed / 50};  // so little that plans move as little as they can
  setup.capacities = {};
  Devices devices(setup);
  devices.iterate(40);
  devices.check_values();
  CHECK(devices.links->joint_plans() == 1);
  for (std::size_t i = 0; i < 2; ++i) {
    CHECK(devices.plan(i).devices == 1);
    CHECK(devices.plan(i).state == PlanState::settled);
    CHECK(devices.plan(i).predicted.iteration < 1ms);
    const std::vector<std::string> notes = devices.runs[i]->manager.report().notes;
    REQUIRE(notes.size() == 1);
    CHECK(notes.front().find("gone back to that") != std::string::npos);
  }
}

TEST_CASE("managers come and go: plans are made for those that are there") {
  Devices devices(two_programs(true));
  devices.iterate(20);
  REQUIRE(devices.links->joint_plans() == 1);

  devices.add({});
  devices.iterate(20);
  CHECK(devices.links->managers() == 3);
  CHECK(devices.links->joint_plans() == 2);
  CHECK(devices.plan(0).devices == 3);
  CHECK(devices.plan(2).devices == 3);
  devices.check_values();

  while (devices.runs.size() > 1) {
    devices.runs.erase(devices.runs.begin());
    devices.models.erase(devices.models.begin());
  }
  devices.iterate(20);
  CHECK(devices.links->managers() == 1);
  CHECK(devices.links->joint_plans() >= 2);
  CHECK(devices.plan(0).devices == 1);
  CHECK(devices.plan(0).predicted.iteration < 1ms);
  devices.check_values();
}

TEST_CASE("another budget of one manager makes another plan for all") {
  Devices devices(two_programs(true));
  devices.iterate(20);
  REQUIRE(devices.links->joint_plans() == 1);
  const Bytes need = SideProgram{}.need();
  devices.runs[0]->manager.set_budget(Bytes{need.value / 4});
  devices.iterate(70);
  devices.check_values();
  CHECK(devices.links->joint_plans() == 2);
  CHECK(devices.tried(0));
  CHECK(devices.tried(1));
  const Report report = devices.runs[0]->manager.report();
  CHECK(report.device_used <= Bytes{need.value / 4});
}

TEST_CASE("with deferred planning, who takes the job makes the plan for all") {
  Setup setup = two_programs(true);
  setup.scheduler.planning = Planning::deferred;
  Devices devices(setup);
  const auto run_jobs = [&] {
    std::size_t jobs = 0;
    for (auto& run : devices.runs) {
      while (std::optional<PlanningJob> job = run->manager.scheduler().planning_job()) {
        job->run();
        ++jobs;
        if (!run->manager.report().plans.empty()) break;
        devices.iterate(1);
      }
    }
    return jobs;
  };
  for (int i = 0; i < 20; ++i) {
    devices.iterate(2);
    run_jobs();
  }
  devices.iterate(10);
  devices.check_values();
  CHECK(devices.links->joint_plans() == 1);
  CHECK(devices.plan(0).devices == 2);
  CHECK(devices.plan(1).devices == 2);
}

TEST_CASE("plans that are not made together say why") {
  Setup setup = two_programs(true);
  setup.scheduler.planner = "slack";
  Devices devices(setup);
  devices.iterate(20);
  devices.check_values();
  CHECK(devices.links->joint_plans() == 0);
  CHECK(devices.plan(0).devices == 1);
  const std::vector<std::string> notes = devices.runs[0]->manager.report().notes;
  REQUIRE(!notes.empty());
  CHECK(notes.back() ==
        "iteration \"train\" is not planned together with other devices: only the planner best makes such plans");
}

TEST_CASE("a plan for several devices begins with a round, and not in the middle of one") {
  // Steps of two kinds in turn: a cycle of two iterations, one of which begins as the other one does.
  for (const bool evaluates_first : {false, true}) {
    CAPTURE(evaluates_first);
    Devices devices(two_programs());
    for (Number i = 0; i < 60; ++i) {
      for (std::size_t d = 0; d < 2; ++d) {
        const bool evaluates = (i % 2 == 0) == evaluates_first;
        if (evaluates) {
          devices.runs[d]->evaluate(i, "step");
          devices.models[d]->evaluate(i);
        } else {
          devices.runs[d]->iterate(i, "step");
          devices.models[d]->iterate(i);
        }
      }
    }
    devices.check_values();
    CHECK(devices.links->joint_plans() >= 1);
    for (std::size_t d = 0; d < 2; ++d) {
      CHECK(devices.tried(d));
      const Report report = devices.runs[d]->manager.report();
      CHECK(report.divergences == 0);
      for (const std::string& note : report.notes) CHECK(note.find("proven dead") == std::string::npos);
    }
  }
}

TEST_CASE("a program that goes back and forth between two iterations is not planned again each time") {
  Devices devices(two_programs());
  for (Number phase = 0; phase < 12; ++phase) {
    devices.iterate(20);
    for (Number i = 0; i < 5; ++i) {
      for (std::size_t d = 0; d < 2; ++d) {
        devices.runs[d]->evaluate(i);
        devices.models[d]->evaluate(i);
      }
    }
  }
  devices.check_values();
  CHECK(devices.links->joint_plans() == 1);
}

TEST_CASE("a program that iterates more often than the others, and one that stops, are planned for a few times") {
  Devices devices(two_programs());
  for (Number i = 0; i < 400; ++i) {
    devices.runs[0]->iterate(i);
    devices.models[0]->iterate(i);
    if (i % 4 != 0 || i > 200) continue;
    devices.runs[1]->iterate(i);
    devices.models[1]->iterate(i);
  }
  devices.check_values();
  CHECK(devices.links->joint_plans() >= 1);
  CHECK(devices.links->joint_plans() <= 4);
}

TEST_CASE("a manager that cannot take part is left out, and one that has no plan is not waited for for ever") {
  Setup setup = two_programs(true);
  setup.programs.push_back({});
  SUBCASE("another planner") {
    Devices devices(setup, [](std::size_t device, SchedulerOptions& options) {
      if (device != 1) return;
      options.planner = "slack";
      options.trial_iterations = 0;
    });
    devices.iterate(30);
    devices.check_values();
    CHECK(devices.links->joint_plans() == 1);
    CHECK(devices.plan(0).devices == 2);
    CHECK(devices.plan(1).devices == 1);
    CHECK(devices.plan(2).devices == 2);
  }
  SUBCASE("no plan") {
    Devices devices(setup, [](std::size_t device, SchedulerOptions& options) {
      if (device == 1) options.observe = 0;
    });
    devices.iterate(100);
    devices.check_values();
    CHECK(devices.links->joint_plans() == 1);
    CHECK(devices.tried(0));
    CHECK(devices.tried(2));
  }
}

TEST_CASE("a scheduler that is used again takes nothing of the old group along") {
  const Setup setup = two_programs(true);
  Scheduler scheduler(setup.scheduler);
  for (int time = 0; time < 2; ++time) {
    CAPTURE(time);
    Devices devices(setup);
    devices.add({}, &scheduler);
    devices.iterate(40);
    devices.check_values();
    CHECK(devices.links->joint_plans() == 1);
    CHECK(devices.plan(2).devices == 3);
  }
  // Without others, it is alone.
  Devices devices(setup);
  devices.links = nullptr;
  devices.add({}, &scheduler);
  devices.iterate(20);
  CHECK(devices.plan(2).devices == 1);
}

TEST_CASE("links that share nothing, or more than there can be, are refused") {
  CHECK_THROWS_AS(SharedLinks({}), UsageError);
  CHECK_THROWS_AS(SharedLinks({.from_devices = std::uint64_t{1} << 62U}), UsageError);
  CHECK_NOTHROW(SharedLinks({.to_devices = (std::uint64_t{1} << 62U) - 1}));
}

}  // namespace swapmm::test::joint_plans_test
