// SPDX-License-Identifier: Apache-2.0
// Plans as the scheduler handles them: saved, loaded, made later, refused.
#include <doctest/doctest.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <swapmm/backend/testing/simulated.hpp>
#include <swapmm/formats/plan_json.hpp>
#include <swapmm/swapmm.hpp>

#include "support/small_program.hpp"

namespace {

using namespace swapmm;
using namespace swapmm::test;
using namespace swapmm::literals;

struct PlansDesk {
  explicit PlansDesk(SchedulerOptions options = {}, Bytes budget = 256_bytes)
      : manager(device, {.device_budget = budget}, Scheduler(std::move(options))) {
    for (int i = 0; i < 6; ++i) {
      weights.push_back(manager.tensor<int>({length}, "w" + std::to_string(i)));
      set(manager, weights.back(), i);
    }
  }
  ~PlansDesk() {
    for (std::size_t i = 0; i < 6; ++i) CHECK(holds(weights[i], static_cast<int>(i) + rounds));
    for (const std::string& violation : device.violations()) FAIL_CHECK(violation);
  }

  void iterate(int times = 1) {
    for (int i = 0; i < times; ++i) {
      auto iteration = manager.iteration("train");
      for (auto& weight : weights) increase(manager, weight, 1);
      ++rounds;
    }
  }
  [[nodiscard]] std::uint64_t followed() { return manager.report().iterations_followed; }
  [[nodiscard]] Scheduler& scheduler() { return manager.scheduler(); }

  Simulated device;
  MemoryManager<Simulated> manager;
  std::vector<Tensor<int, Simulated>> weights;
  int rounds = 0;
};

std::string saved_plan(std::string planner = "excess-overlap", Bytes budget = 256_bytes) {
  PlansDesk desk({.planner = std::move(planner)}, budget);
  desk.iterate(4);
  std::ostringstream out;
  desk.scheduler().save_plan("train", out);
  return out.str();
}

void load(PlansDesk& desk, const std::string& text) {
  std::istringstream in(text);
  desk.scheduler().load_plan("train", in);
}

}  // namespace

TEST_CASE("a saved plan is followed by another manager from the second iteration on") {
  const std::string text = saved_plan("belady");
  PlansDesk desk({.planner = "per-operation"});
  load(desk, text);
  desk.iterate();
  CHECK(desk.followed() == 0);
  desk.iterate();
  CHECK(desk.followed() == 1);
  CHECK(desk.manager.report().plans.at(0).planner == "belady");
  CHECK(desk.manager.report().notes.empty());
  desk.iterate(4);
  CHECK(desk.followed() == 5);
  const std::shared_ptr<const Plan> plan = desk.scheduler().plan("train");
  REQUIRE(plan != nullptr);
  CHECK(plan->commands == read_plan(text)->commands);
}

TEST_CASE("a plan that is loaded while one is known takes its place") {
  const std::string text = saved_plan("per-operation");
  PlansDesk desk({.planner = "belady"});
  desk.iterate(4);
  CHECK(desk.scheduler().plan("train")->planner == "belady");
  load(desk, text);
  CHECK(desk.scheduler().plan("train")->planner == "per-operation");
  {
    auto iteration = desk.manager.iteration("aside");
    increase(desk.manager, desk.weights[0], 0);
  }
  desk.iterate(2);
  CHECK(desk.followed() == 4);
  CHECK(desk.manager.report().plans.at(0).planner == "per-operation");
}

TEST_CASE("a plan for a larger budget is refused with the rule it breaks, and the own planner takes over") {
  const std::string text = saved_plan("on-demand", 384_bytes);
  PlansDesk desk({.planner = "belady"});
  load(desk, text);
  desk.iterate(4);
  const Report report = desk.manager.report();
  REQUIRE(report.notes.size() == 1);
  CHECK(says(report.notes[0], {"\"train\"", "refused", "rule"}));
  CHECK(desk.followed() > 0);
  CHECK(report.plans.at(0).planner == "belady");
}

TEST_CASE("a plan without one of its waits is refused, and the program is right") {
  Result<Plan> plan = read_plan(saved_plan());
  REQUIRE(plan.has_value());
  for (Command& command : plan->commands) command.before_operation.reset();
  std::ostringstream out;
  write_plan(out, *plan);
  PlansDesk desk;
  load(desk, out.str());
  desk.iterate(4);
  CHECK(says(desk.manager.report().notes.at(0), {"refused", "rule"}));
  CHECK(desk.followed() > 0);
}

TEST_CASE("saving to a stream that fails is an error, and the plan is still there") {
  PlansDesk desk;
  desk.iterate(4);
  std::ostringstream out;
  out.setstate(std::ios::badbit);
  CHECK(says(text_of<Error>([&] { desk.scheduler().save_plan("train", out); }), {"\"train\"", "stream"}));
  CHECK(desk.scheduler().plan("train") != nullptr);
}

TEST_CASE("with deferred planning, observation goes on until somebody has made the plan") {
  PlansDesk desk({.planning = Planning::deferred});
  desk.iterate(2);
  CHECK(!desk.scheduler().planning_job().has_value());  // the second one is learned from when the third begins
  desk.iterate(2);
  CHECK(desk.followed() == 0);
  std::optional<PlanningJob> job = desk.scheduler().planning_job();
  REQUIRE(job.has_value());
  desk.iterate(2);
  CHECK(desk.followed() == 0);
  job->run();
  CHECK(!desk.scheduler().planning_job().has_value());
  desk.iterate(3);
  CHECK(desk.followed() == 3);
}

TEST_CASE("another thread may make the plan while the program goes on") {
  PlansDesk desk({.planning = Planning::deferred});
  desk.iterate(3);
  std::optional<PlanningJob> job = desk.scheduler().planning_job();
  REQUIRE(job.has_value());
  std::thread planner([&] { job->run(); });
  for (int i = 0; i < 50; ++i) desk.iterate();
  planner.join();
  desk.iterate(2);
  CHECK(desk.followed() >= 2);
}

TEST_CASE("a job that outlives its manager still runs, for nobody") {
  std::optional<PlanningJob> job;
  {
    PlansDesk desk({.planning = Planning::deferred});
    desk.iterate(3);
    job = desk.scheduler().planning_job();
  }
  REQUIRE(job.has_value());
  job->run();
}

TEST_CASE("an unknown planner leaves the program on demand, and the report says which ones there are") {
  PlansDesk desk({.planner = "guess"});
  desk.iterate(5);
  CHECK(desk.followed() == 0);
  REQUIRE(desk.manager.report().notes.size() == 1);
  CHECK(says(desk.manager.report().notes[0], {"\"train\"", "on demand", "\"guess\"", "belady"}));
}

TEST_CASE("plans are made for the manager's device and for links as they were observed") {
  PlansDesk desk;
  desk.iterate(4);
  const Machine machine = desk.scheduler().plan("train")->machine;
  CHECK(machine.name == "simulated");
  CHECK(machine.device_budget == 256_bytes);
  CHECK(machine.alignment == 16_bytes);
  CHECK(machine.h2d.bytes_per_second == 1'000'000'000);  // 64 bytes in 64 ns
  CHECK(machine.d2h.bytes_per_second == 1'000'000'000);
  CHECK(machine.duplex == Duplex::full);
  const auto trace = desk.scheduler().trace("train");
  REQUIRE(trace.has_value());
  for (const TraceOperation& operation : trace->operations) CHECK(operation.duration == operation_time);
}

TEST_CASE("links may be given, the budget and the alignment are always the manager's") {
  Machine given;
  given.name = "mine";
  given.device_budget = 1_GiB;
  given.alignment = 1_bytes;
  given.h2d = {123, std::chrono::nanoseconds{5}};
  given.d2h = {456, std::chrono::nanoseconds{6}};
  given.duplex = Duplex::half;
  PlansDesk desk({.machine = given});
  desk.iterate(4);
  const Machine machine = desk.scheduler().plan("train")->machine;
  CHECK(machine.name == "mine");
  CHECK(machine.h2d == given.h2d);
  CHECK(machine.d2h == given.d2h);
  CHECK(machine.duplex == Duplex::half);
  CHECK(machine.device_budget == 256_bytes);
  CHECK(machine.alignment == 16_bytes);
  CHECK(desk.followed() == 2);
}

TEST_CASE("a program seen again on other tensors needs no planner: its plan is known") {
  PlansDesk desk;
  desk.iterate(4);
  const std::vector<Command> commands = desk.scheduler().plan("train")->commands;
  std::vector<Tensor<int, Simulated>> others;
  for (int i = 0; i < 6; ++i) {
    others.push_back(desk.manager.tensor<int>({length}, "other"));
    set(desk.manager, others.back(), 0);
  }
  for (int i = 0; i < 4; ++i) {
    auto iteration = desk.manager.iteration("train");
    for (auto& other : others) increase(desk.manager, other, 1);
  }
  CHECK(desk.followed() == 4);
  CHECK(desk.scheduler().plan("train")->commands == commands);
  for (auto& other : others) CHECK(holds(other, 4));
}

TEST_CASE("the sequence that was not used for longest is forgotten beyond max_sequences") {
  PlansDesk desk({.max_period = 1, .max_sequences = 2, .trial_iterations = 0});
  const auto only = [&](std::size_t which) {
    auto iteration = desk.manager.iteration("turns");
    increase(desk.manager, desk.weights[which], 0);
  };
  for (std::size_t which = 0; which < 4; ++which) {
    for (int i = 0; i < 3; ++i) only(which);
  }
  CHECK(desk.manager.report().plans.size() == 2);
  CHECK(desk.followed() == 4);
  only(3);
  only(2);  // known
  CHECK(desk.followed() == 6);
  only(0);
  CHECK(desk.followed() == 6);
}

TEST_CASE("a program that goes round in a ring of tensors that fit moves few of them to start plans") {
  constexpr std::size_t ring = 16;
  for (const Bytes budget : {Bytes{ring * 64}, Bytes{ring * 64 * 3 / 4}}) {
    std::uint64_t moved[2] = {};
    for (const bool plans : {false, true}) {
      SchedulerOptions options;
      options.observe = plans ? 2 : 0;
      options.trial_iterations = 0;
      options.max_period = 32;
      simulated::Options links;  // a copy takes as long as an operation
      links.h2d.bytes_per_second = links.d2h.bytes_per_second = 64'000'000;
      Simulated device(links);
      MemoryManager<Simulated> manager(device, {.device_budget = budget}, Scheduler(options));
      std::vector<Tensor<int, Simulated>> tensors;
      for (std::size_t i = 0; i < ring; ++i) {
        tensors.push_back(manager.tensor<int>({length}, "t" + std::to_string(i)));
        set(manager, tensors.back(), 0);
      }
      constexpr std::size_t rounds = 1600;
      for (std::size_t i = 0; i < rounds; ++i) {
        for (std::size_t j = 0; j < 4; ++j) {
          auto iteration = manager.iteration("step");
          increase(manager, tensors[(i + j) % ring], 1);
        }
      }
      moved[plans ? 1 : 0] = manager.report().swap_ins + manager.report().swap_outs;
      for (const auto& tensor : tensors) CHECK(holds(tensor, 4 * rounds / ring));
      CHECK(device.violations().empty());
    }
    CAPTURE(budget.value);
    CHECK(moved[1] <= moved[0] + 20 * ring);  // more than ten times as many if all starts count as paid
  }
}
