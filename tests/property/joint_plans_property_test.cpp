// SPDX-License-Identifier: Apache-2.0
//
// Random training steps on several devices that share the way to the host: their managers iterate in any order, some
// more often than others, come and go, and get other budgets. Every weight must have its bits, and no device more than
// its budget. SWAPMM_TEST_SEED=n runs the programs of that seed alone, SWAPMM_TEST_SEEDS=n so many of them.

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "support/effort.hpp"
#include "support/seeds.hpp"
#include "support/side_by_side.hpp"

namespace swapmm::test::joint_plans_property_test {

const std::uint64_t usual_programs = effort(120, 12);

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_(seed) {}
  std::size_t between(std::size_t least, std::size_t most) { return least + random_() % (most - least + 1); }
  bool one_in(std::size_t count) { return random_() % count == 0; }

 private:
  std::mt19937_64 random_;
};

struct Device {
  SideProgram program;
  std::size_t evaluates = 0;  // one in so many iterations; 0: none
  Bytes budget;
  Bytes most;  // of all budgets so far
  std::unique_ptr<SideRun> run;
  SideModel model;
  Number seed = 0;

  void iterate() {
    ++seed;
    if (evaluates != 0 && seed % evaluates == 0) {
      run->evaluate(seed, "train");  // a part of the same cycle
      model.evaluate(seed);
    } else {
      run->iterate(seed);
      model.iterate(seed);
    }
  }
};

class World {
 public:
  explicit World(std::uint64_t seed) : draw_(seed) {
    constexpr std::uint64_t speed = 1'000'000'000;
    LinkCapacities capacities;
    const auto some = [&] { return speed * draw_.between(2, 8) / 4; };
    if (draw_.one_in(2)) {
      capacities.both_ways = some();
    } else {
      capacities = {some(), some(), 0};
    }
    if (!draw_.one_in(6)) clock_ = std::make_shared<simulated::SharedClock>(capacities);
    links_ = std::make_shared<SharedLinks>(capacities);
    const std::size_t count = draw_.between(2, 4);
    for (std::size_t i = 0; i < count; ++i) add();
  }

  void run() {
    const std::size_t rounds = draw_.between(30, 70);
    for (std::size_t i = 0; i < rounds; ++i) {
      for (const auto& device : devices_) {
        if (draw_.one_in(12)) continue;  // it misses a round
        device->iterate();
        if (draw_.one_in(20)) device->iterate();
        if (draw_.one_in(60)) change_budget(*device);
      }
      if (draw_.one_in(25)) add();
      if (draw_.one_in(25) && devices_.size() > 1) leave(draw_.between(0, devices_.size() - 1));
      if (draw_.one_in(10)) check(*devices_[draw_.between(0, devices_.size() - 1)]);
    }
    for (const auto& device : devices_) check(*device);
    joint_plans = links_->joint_plans();
  }

  std::uint64_t joint_plans = 0;

 private:
  void add() {
    SideProgram program;
    if (devices_.empty() || draw_.one_in(3)) {
      program = {draw_.between(2, 8), draw_.between(16, 400), std::chrono::microseconds(draw_.between(1, 4)),
                 std::chrono::microseconds(draw_.between(1, 8))};
    } else {
      program = devices_.front()->program;
    }
    simulated::Options options;
    options.device_bytes = Bytes{2 * program.need().value};
    options.h2d.latency = options.d2h.latency = std::chrono::nanoseconds(draw_.between(0, 200));
    options.clock = clock_;
    SchedulerOptions scheduler;
    scheduler.planning_time = std::chrono::milliseconds(draw_.between(1, 10));
    scheduler.sample_every = draw_.between(5, 20);
    scheduler.trial_iterations = draw_.one_in(3) ? 0 : 4;
    // Which iteration a cycle goes on with after a change is not known from its first operation, so values that only
    // the other one needs may be gone, unless they are proven dead.
    const std::size_t evaluates = draw_.one_in(2) ? 0 : draw_.between(2, 4);
    const std::array rules{DropRule::proven, DropRule::by_evidence, DropRule::observed};
    scheduler.drops = rules[evaluates != 0 ? 0 : draw_.between(0, 2)];
    const Bytes budget = some_budget(program);
    Options manager;
    manager.device_budget = budget;
    manager.shared_links = links_;
    manager.run_ahead = draw_.between(1, 3);
    devices_.push_back(std::make_unique<Device>(
        Device{program, evaluates, budget, budget,
               std::make_unique<SideRun>(program, options, manager, Scheduler(scheduler)), SideModel(program)}));
  }
  Bytes some_budget(const SideProgram& program) {
    const std::uint64_t least = 3 * round_up(program.tensor(), Bytes{16}).value;
    return Bytes{least + (program.need().value * draw_.between(0, 10)) / 10};
  }
  void change_budget(Device& device) {
    device.budget = some_budget(device.program);
    device.most = std::max(device.most, device.budget);
    device.run->manager.set_budget(device.budget);
  }
  void leave(std::size_t i) {
    check(*devices_[i]);
    devices_.erase(devices_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  void check(Device& device) {
    CHECK(device.run->weights() == device.model.weights());
    CHECK(device.run->device.violations() == std::vector<std::string>{});
    const Report report = device.run->manager.report();
    CHECK(report.device_peak <= device.most);
    CHECK(report.device_used <= device.budget);
    for (const std::string& note : report.notes) {
      const bool is_wrong = note.find("mistake") != std::string::npos || note.find("refused") != std::string::npos ||
                            note.find("given up") != std::string::npos;
      CHECK_MESSAGE(!is_wrong, note);
    }
  }

  Draw draw_;
  std::shared_ptr<simulated::SharedClock> clock_;
  std::shared_ptr<SharedLinks> links_;
  std::vector<std::unique_ptr<Device>> devices_;
};

TEST_CASE("joint plans: random programs on several devices keep their bits and their budgets") {
  const Seeds all = seeds(usual_programs);
  std::uint64_t plans = 0;
  for (std::uint64_t seed = all.first; seed < all.first + all.count; ++seed) {
    CAPTURE(seed);
    World world(seed);
    world.run();
    plans += world.joint_plans;
  }
  if (all.count < usual_programs) return;
  CHECK(plans >= usual_programs / 4);
}

}  // namespace swapmm::test::joint_plans_property_test
