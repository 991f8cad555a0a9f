// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/backend/testing/simulated.hpp>
#include <swapmm/plan/planners.hpp>
#include <swapmm/swapmm.hpp>

#include "support/small_program.hpp"

namespace swapmm::test {

/// Six tensors of which four fit; each iteration adds 1 to all of them. Checks every value at the end.
struct OwnPlannerDesk {
  explicit OwnPlannerDesk(SchedulerOptions options)
      : manager(device, {.device_budget = Bytes{256}}, Scheduler(std::move(options))) {
    for (int i = 0; i < 6; ++i) {
      weights.push_back(manager.tensor<int>({length}, "w" + std::to_string(i)));
      set(manager, weights.back(), i);
    }
  }
  ~OwnPlannerDesk() {
    for (std::size_t i = 0; i < 6; ++i) CHECK(holds(weights[i], static_cast<int>(i) + rounds));
    for (const std::string& violation : device.violations()) FAIL_CHECK(violation);
  }

  void iterate(int times, std::chrono::nanoseconds each = operation_time) {
    for (int i = 0; i < times; ++i) {
      auto iteration = manager.iteration("train");
      for (auto& weight : weights) grow(weight, each);
      ++rounds;
    }
  }
  /// The same with the plans made as they are asked for.
  void iterate_and_plan(int times) {
    for (int i = 0; i < times; ++i) {
      iterate(1);
      if (std::optional<PlanningJob> job = manager.scheduler().planning_job()) job->run();
    }
  }
  [[nodiscard]] std::uint64_t followed() { return manager.report().iterations_followed; }

  Simulated device;
  MemoryManager<Simulated> manager;
  std::vector<Tensor<int, Simulated>> weights;
  int rounds = 0;

 private:
  void grow(const Tensor<int, Simulated>& to, std::chrono::nanoseconds time) {
    manager.run("grow", updates(to), [&](auto& op) {
      const auto out = op[to];
      op.queue().launch("grow", time, {Touch::read(out), Touch::write(out)}, [out] {
        for (int& element : out) element += 1;
      });
    });
  }
};

inline Result<Plan> plan_like_belady(const Trace& trace, const Machine& machine) {
  return make_plan("belady", trace, machine);
}

}  // namespace swapmm::test
