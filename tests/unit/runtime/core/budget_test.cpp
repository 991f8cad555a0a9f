// SPDX-License-Identifier: Apache-2.0
// The device budget changes while the program runs: no value is lost, and the driver has the rest.
#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/backend/testing/simulated.hpp>
#include <swapmm/swapmm.hpp>

#include "support/faulty_simulated.hpp"
#include "support/small_program.hpp"
#include "support/weight_desk.hpp"

using namespace swapmm;
using namespace swapmm::test;
using namespace swapmm::literals;

namespace {

SchedulerOptions planned() {
  SchedulerOptions options;
  options.planner = "belady";
  options.trial_iterations = 0;
  return options;
}

/// Weight i begins with i, and has grown by one in each iteration of "train".
struct BudgetDesk : WeightDesk {
  explicit BudgetDesk(simulated::Options device_options = {}, Options options = {.device_budget = 256_bytes})
      : WeightDesk(device_options, options, Scheduler(planned())) {}
  void train(int times) {
    for (int i = 0; i < times; ++i) increase_all("train");
    rounds += times;
  }
  void check_values() {
    for (std::size_t i = 0; i < weights.size(); ++i) CHECK(holds(weights[i], static_cast<int>(i) + rounds));
  }
  [[nodiscard]] Bytes taken() const { return device.counters().device_bytes; }
  int rounds = 0;
};

}  // namespace

TEST_CASE("a scheduler belongs to one manager, as long as that exists") {
  Simulated device;
  Scheduler scheduler;
  std::optional<MemoryManager<Simulated>> first;
  first.emplace(device, Options{.device_budget = 8_KiB}, scheduler);
  const auto second = [&](Bytes budget) {
    return MemoryManager<Simulated>(device, Options{.device_budget = budget}, scheduler);
  };
  CHECK(says(text_of<UsageError>([&] { second(16_KiB); }), {"scheduler belongs to another manager"}));
  const auto tensor = first->tensor<int>({4}, "outlives its manager");
  first.reset();
  CHECK_THROWS_AS(second(Bytes{0}), UsageError);  // and it is free again
  CHECK(second(16_KiB).report().device_budget == 16_KiB);
}

TEST_CASE("a smaller budget gives the rest back to the driver at once, a larger one takes it, and values stay") {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    simulated::Options device_options;
    device_options.order = seed % 2 == 0 ? simulated::Order::uniform : simulated::Order::copies_last;
    device_options.seed = seed;
    device_options.pieces = 4;
    BudgetDesk desk(device_options);
    desk.train(static_cast<int>(seed % 5));
    desk.manager.set_budget(128_bytes);
    CHECK(desk.taken() == 128_bytes);
    desk.check_values();
    desk.train(3);
    desk.manager.set_budget(500_bytes);
    CHECK(desk.taken() == 496_bytes);  // whole multiples of the alignment
    CHECK(desk.report().device_budget == 496_bytes);
    desk.train(3);
    desk.check_values();
    desk.manager.set_budget(64_bytes);
    desk.train(4);
    desk.manager.set_budget(496_bytes);
    desk.train(2);
    desk.check_values();
    CHECK(desk.report().budget_changes == 4);
    // Never more than the larger of two budgets that follow each other.
    CHECK(desk.device.counters().peak_device_bytes == 496_bytes);
  }
}

TEST_CASE("a larger budget never takes the smaller one beside it") {
  BudgetDesk desk;
  desk.train(4);
  desk.manager.set_budget(320_bytes);
  CHECK(desk.device.counters().peak_device_bytes == 320_bytes);
  desk.manager.set_budget(192_bytes);
  CHECK(desk.device.counters().peak_device_bytes == 320_bytes);
}

TEST_CASE("the budget that there is changes nothing, and counts as no change") {
  BudgetDesk desk;
  desk.train(4);
  desk.manager.set_budget(256_bytes);
  desk.manager.set_budget(270_bytes);  // the same multiple of the alignment
  CHECK(desk.report().budget_changes == 0);
  desk.train(1);
  CHECK(desk.report().plan_starts == 1);
}

TEST_CASE("a plan for the new budget is made from what was observed, and followed by the next iteration") {
  BudgetDesk desk;
  desk.train(4);
  for (const Bytes budget : {128_bytes, 320_bytes, 512_bytes}) {
    desk.manager.set_budget(budget);
    const std::uint64_t followed = desk.followed();
    desk.train(1);
    CHECK(desk.followed() == followed + 1);
    REQUIRE(desk.report().plans.size() == 1);
    CHECK(desk.report().plans[0].predicted.peak <= budget);
    CHECK(desk.manager.scheduler().plan("train")->machine.device_budget == budget);
  }
  CHECK(desk.report().divergences == 0);
  desk.check_values();
}

TEST_CASE("plans are found again by their budget") {
  BudgetDesk desk;
  desk.train(4);
  const std::shared_ptr<const Plan> first = desk.manager.scheduler().plan("train");
  desk.manager.set_budget(128_bytes);
  desk.train(2);
  const std::shared_ptr<const Plan> second = desk.manager.scheduler().plan("train");
  CHECK(second->machine.device_budget == 128_bytes);
  desk.manager.set_budget(256_bytes);
  desk.train(2);
  CHECK(desk.manager.scheduler().plan("train") == first);
  desk.manager.set_budget(128_bytes);
  desk.train(2);
  CHECK(desk.manager.scheduler().plan("train") == second);
  CHECK(desk.followed() == 2 + 6);
  desk.check_values();
}

TEST_CASE("what no plan could be made for gets one where the budget allows it, without another observation") {
  BudgetDesk desk({}, {.device_budget = 128_bytes});
  const auto three = [&] {
    auto iteration = desk.manager.iteration("three");
    desk.manager.run("sum", reads(desk.weights[0], desk.weights[1]), updates(desk.weights[2]), [](auto&) {});
  };
  CHECK(says(text_of<BundleTooLarge>(three), {"\"sum\"", "192", "128"}));
  desk.manager.set_budget(192_bytes);
  three();
  desk.manager.set_budget(128_bytes);
  CHECK(says(text_of<BundleTooLarge>(three), {"\"sum\"", "192", "128"}));
  desk.train(3);
  desk.check_values();
}

TEST_CASE("the budget cannot change inside an iteration or an operation, or below the alignment") {
  BudgetDesk desk;
  desk.train(4);
  {
    auto iteration = desk.manager.iteration("train");
    CHECK(says(text_of<UsageError>([&] { desk.manager.set_budget(128_bytes); }), {"\"train\"", "end it first"}));
    for (auto& weight : desk.weights) increase(desk.manager, weight, 1);
    ++desk.rounds;
  }
  CHECK(says(text_of<UsageError>([&] { desk.manager.set_budget(15_bytes); }), {"15 bytes", "alignment of 16"}));
  CHECK(says(text_of<UsageError>([&] { desk.manager.set_budget(0_bytes); }), {"0 bytes"}));
  desk.manager.start_profile();
  CHECK(says(text_of<UsageError>([&] { desk.manager.set_budget(128_bytes); }), {"profile"}));
  (void)desk.manager.stop_profile();
  desk.manager.run("inside", updates(desk.weights[0]),
                   [&](auto&) { CHECK(text_of<NestedOperation>([&] { desk.manager.set_budget(128_bytes); }) != ""); });
  CHECK(desk.report().budget_changes == 0);
  desk.check_values();
}

TEST_CASE("where the device refuses a larger budget, everything is as before, and the plan goes on") {
  simulated::Options device_options;
  device_options.device_bytes = 300_bytes;
  BudgetDesk desk(device_options);
  desk.train(4);
  const Report before = desk.report();
  CHECK(says(text_of<OutOfMemory>([&] { desk.manager.set_budget(512_bytes); }), {"512"}));
  CHECK(desk.report().device_budget == 256_bytes);
  CHECK(desk.taken() == 256_bytes);
  CHECK(desk.report().swap_outs == before.swap_outs);
  desk.train(2);
  CHECK(desk.report().plan_starts == 1);
  CHECK(desk.followed() == before.iterations_followed + 2);
  desk.check_values();
}

TEST_CASE("where the host has no room for what is on the device alone, everything is as before") {
  BudgetDesk desk({}, {.device_budget = 384_bytes, .host_budget = 128_bytes});
  const Report before = desk.report();
  CHECK(before.device_used == 384_bytes);
  CHECK(says(text_of<OutOfMemory>([&] { desk.manager.set_budget(256_bytes); }), {"256", "host budget"}));
  CHECK(desk.report().device_budget == 384_bytes);
  CHECK(desk.report().device_used == 384_bytes);
  CHECK(desk.report().swap_outs == before.swap_outs);
  CHECK(desk.report().budget_changes == 0);
  desk.weights.pop_back();
  desk.weights.pop_back();
  desk.weights.pop_back();
  desk.weights.pop_back();
  desk.manager.set_budget(256_bytes);
  CHECK(desk.taken() == 256_bytes);
  desk.check_values();
}

TEST_CASE("where the device gives back neither the new budget nor the old one, the values are on the host") {
  using Device = FaultySimulated;
  for (const FaultMode mode : {FaultMode::once, FaultMode::for_ever}) {
    Simulated inner;
    // The manager, then the attempt at the difference, then the new memory: that one is refused.
    Device device(inner, FaultPlan{FaultClass::device_allocation, mode, 3});
    MemoryManager<Device> manager(device, {.device_budget = 256_bytes});
    auto tensors = uploaded_tensors(manager, 6);
    for (auto& tensor : tensors) increase(manager, tensor, 10);
    const bool again = mode == FaultMode::once;  // the old memory can be had again
    const std::string text = text_of<OutOfMemory>([&] { manager.set_budget(512_bytes); });
    CHECK((text.find("it is 0 bytes now") == std::string::npos) == again);
    CHECK(manager.report().device_budget == (again ? 256_bytes : 0_bytes));
    CHECK(inner.counters().device_bytes == manager.report().device_budget);
    CHECK(manager.report().device_used == 0_bytes);
    for (std::size_t i = 0; i < tensors.size(); ++i) CHECK(holds(tensors[i], static_cast<int>(i) + 11));
    if (!again) {
      CHECK(says(text_of<BundleTooLarge>([&] { increase(manager, tensors[0], 1); }), {"64", " 0"}));
      device.restart({});
      manager.set_budget(128_bytes);
    }
    for (auto& tensor : tensors) increase(manager, tensor, 1);
    for (std::size_t i = 0; i < tensors.size(); ++i) CHECK(holds(tensors[i], static_cast<int>(i) + 12));
    for (const std::string& violation : inner.violations()) FAIL_CHECK(violation);
  }
}

TEST_CASE("a budget of several allocations changes to one of others") {
  simulated::Options device_options;
  device_options.max_allocation = 128_bytes;
  BudgetDesk desk(device_options);
  desk.train(4);
  for (const Bytes budget : {64_bytes, 128_bytes, 192_bytes, 320_bytes, 256_bytes}) {
    desk.manager.set_budget(budget);
    CHECK(desk.taken() == budget);
    desk.train(3);
    desk.check_values();
  }
}

TEST_CASE("with deferred planning the plans for the new budget wait to be made") {
  SchedulerOptions options = planned();
  options.planning = Planning::deferred;
  WeightDesk desk({}, {.device_budget = 256_bytes}, Scheduler(options));
  for (int i = 0; i < 3; ++i) desk.increase_all("train");
  desk.manager.scheduler().planning_job()->run();
  for (int i = 0; i < 3; ++i) desk.increase_all("train");
  CHECK(desk.followed() == 3);
  desk.manager.set_budget(128_bytes);
  desk.increase_all("train");
  CHECK(desk.followed() == 3);
  std::optional<PlanningJob> job = desk.manager.scheduler().planning_job();
  REQUIRE(job);
  desk.manager.set_budget(256_bytes);
  desk.increase_all("train");
  CHECK(desk.followed() == 4);
  job->run();  // for the budget of then
  desk.increase_all("train");
  desk.manager.set_budget(128_bytes);
  desk.increase_all("train");
  CHECK(desk.followed() == 6);
  CHECK(holds(desk.weights[5], 5 + 10));
}

TEST_CASE("a plan that was loaded before its manager was made belongs to the manager's budget") {
  std::stringstream saved;
  {
    BudgetDesk desk;
    desk.train(4);
    desk.manager.scheduler().save_plan("train", saved);
  }
  Scheduler scheduler(planned());
  scheduler.load_plan("train", saved);
  WeightDesk desk({}, {.device_budget = 256_bytes}, scheduler);
  for (int i = 0; i < 3; ++i) desk.increase_all("train");
  const std::shared_ptr<const Plan> loaded = scheduler.plan("train");
  REQUIRE(loaded != nullptr);
  desk.manager.set_budget(128_bytes);
  desk.increase_all("train");
  CHECK(scheduler.plan("train") != loaded);
  desk.manager.set_budget(256_bytes);
  desk.increase_all("train");
  CHECK(scheduler.plan("train") == loaded);
}

TEST_CASE("without device memory there is no plan, and the old plan comes back with its budget") {
  using Device = FaultySimulated;
  Simulated inner;
  Device device(inner);
  MemoryManager<Device> manager(device, {.device_budget = 256_bytes}, Scheduler(planned()));
  auto tensors = uploaded_tensors(manager, 6);
  const auto train = [&] {
    const auto iteration = manager.iteration("train");
    for (auto& tensor : tensors) increase(manager, tensor, 1);
  };
  for (int i = 0; i < 5; ++i) train();
  const std::shared_ptr<const Plan> plan = manager.scheduler().plan("train");
  REQUIRE(plan != nullptr);
  device.restart({FaultClass::device_allocation, FaultMode::for_ever, 2});
  CHECK(says(text_of<OutOfMemory>([&] { manager.set_budget(512_bytes); }), {"it is 0 bytes now"}));
  CHECK(manager.report().plans.empty());
  CHECK(manager.scheduler().plan("train") == nullptr);
  device.restart({});
  manager.set_budget(256_bytes);
  const std::uint64_t followed = manager.report().iterations_followed;
  train();
  CHECK(manager.scheduler().plan("train") == plan);
  CHECK(manager.report().iterations_followed == followed + 1);
  for (std::size_t i = 0; i < tensors.size(); ++i) CHECK(holds(tensors[i], static_cast<int>(i) + 7));
}
