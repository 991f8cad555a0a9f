// SPDX-License-Identifier: Apache-2.0
// Managers that share links, each in a thread of its own. Run under ThreadSanitizer, too.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <swapmm/shared_links.hpp>
#include <swapmm/swapmm.hpp>

#include "support/in_threads.hpp"
#include "support/null_backend.hpp"
#include "support/side_by_side.hpp"
#include "support/turn_desk.hpp"

namespace swapmm::test::shared_links_threads_test {

using namespace std::chrono_literals;

/// A program, the same as plain loops, and how its rounds go on.
class Part {
 public:
  Part(const std::shared_ptr<SharedLinks>& links, Planning planning, double memory = 0.5)
      : links_(links), run_(program(), device(), options(links, memory), scheduler(planning)), model_(program()) {}

  void iterate(int rounds) {
    for (; rounds > 0; --rounds) {
      ++seed_;
      run_.iterate(seed_);
      model_.iterate(seed_);
    }
  }
  /// `plans`: whatever waits to be planned.
  void iterate_until_planned_together(bool plans) {
    constexpr int most = 20'000;
    for (int i = 0; i < most && (i < 200 || links_->joint_plans() == 0); ++i) {
      iterate(1);
      if (plans) plan();
    }
  }
  void set_budget(double memory) { run_.manager.set_budget(options(links_, memory).device_budget); }
  [[nodiscard]] bool is_right() {
    return run_.weights() == model_.weights() && run_.device.violation_count() == 0 &&
           run_.manager.report().device_peak <= program().need();
  }

 private:
  void plan() {
    if (auto job = run_.manager.scheduler().planning_job()) job->run();
  }
  static SideProgram program() { return {.layers = 3, .numbers = 64, .forward = 1us, .backward = 2us}; }
  static simulated::Options device() {
    simulated::Options options;
    options.device_bytes = program().need();
    return options;
  }
  static Options options(const std::shared_ptr<SharedLinks>& links, double memory) {
    Options options;
    options.device_budget = Bytes{static_cast<std::uint64_t>(memory * static_cast<double>(program().need().value))};
    options.shared_links = links;
    return options;
  }
  static Scheduler scheduler(Planning planning) {
    SchedulerOptions options;
    options.planning = planning;
    options.planning_time = 1ms;
    options.trial_iterations = 0;
    return Scheduler(options);
  }

  std::shared_ptr<SharedLinks> links_;
  SideRun run_;
  SideModel model_;
  Number seed_ = 0;
};

TEST_CASE("managers in threads plan together, come and go, and keep their bits") {
  const auto links = std::make_shared<SharedLinks>(LinkCapacities{.both_ways = 1'000'000'000});
  std::atomic<int> right{0};
  const std::vector<std::function<void()>> parts{
      [&] {  // stays
        Part part(links, Planning::immediate);
        part.iterate_until_planned_together(false);
        right += part.is_right() ? 1 : 0;
      },
      [&] {  // plans for others, too
        Part part(links, Planning::deferred);
        part.iterate_until_planned_together(true);
        right += part.is_right() ? 1 : 0;
      },
      [&] {  // leaves and comes again
        for (int i = 0; i < 4; ++i) {
          Part part(links, Planning::immediate);
          part.iterate(12);
          right += part.is_right() ? 1 : 0;
        }
      },
      [&] {  // has other budgets
        Part part(links, Planning::immediate);
        for (int i = 0; i < 6; ++i) {
          part.iterate(8);
          part.set_budget(i % 2 == 0 ? 0.6 : 0.5);
        }
        right += part.is_right() ? 1 : 0;
      },
  };
  in_threads(parts.size(), [&](std::size_t i) { parts[i](); });
  CHECK(right == 7);
  CHECK(links->joint_plans() > 0);
}

TEST_CASE("copies of two threads take turns, while each of them leaves its plan and begins it again") {
  const auto board = std::make_shared<runtime::TurnBoard<NullBackend>>();
  TurnDesk<NullBackend> first(1, 2, NullBackend(), board);
  TurnDesk<NullBackend> second(2, 1, NullBackend(), board);
  REQUIRE(second.can_wait);
  constexpr int rounds = 20'000;
  const auto run = [](TurnDesk<NullBackend>& desk, std::uint32_t step, int restarts_every) {
    for (int i = 0; i < rounds; ++i) {
      if (i % restarts_every == 0) desk.taker.start(&desk.turns);
      desk.begin_round();
      desk.copy(step);
    }
    desk.taker.stop();
  };
  in_threads(2, [&](std::size_t i) { i == 0 ? run(first, 0, 1'000) : run(second, 1, 700); });
  CHECK(second.taker.taken() + second.taker.missed() == rounds);
  CHECK(first.taker.taken() + first.taker.missed() == 0);
  // One after the other, a copy finds the one that it waits for.
  first.taker.start(&first.turns);
  second.taker.start(&second.turns);
  const std::uint64_t taken = second.taker.taken();
  first.begin_round();
  first.copy(0);
  second.begin_round();
  second.copy(1);
  CHECK(second.taker.taken() == taken + 1);
}

}  // namespace swapmm::test::shared_links_threads_test
