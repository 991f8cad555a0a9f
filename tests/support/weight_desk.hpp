// SPDX-License-Identifier: Apache-2.0
#pragma once

// A simulated device, a manager on it, and a program of a few weights that do not all fit.

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <swapmm/backend/testing/simulated.hpp>
#include <swapmm/swapmm.hpp>

#include "support/small_program.hpp"

namespace swapmm::test {

/// A device on which nothing happens until the host waits, so that every wait shows.
[[nodiscard]] inline simulated::Options only_when_waited_for() {
  simulated::Options options;
  options.order = simulated::Order::uniform;
  options.steps_in_calls = false;
  return options;
}

/// Weights of which four fit, made by operations before the first iteration.
struct WeightDesk {
  explicit WeightDesk(simulated::Options device_options = {}, Options options = {.device_budget = Bytes{256}},
                      Scheduler scheduler = Scheduler(), std::size_t weight_count = 6)
      : device(device_options), manager(device, options, std::move(scheduler)) {
    for (std::size_t i = 0; i < weight_count; ++i) {
      weights.push_back(manager.tensor<int>({length}, "w" + std::to_string(i)));
      set(manager, weights.back(), static_cast<int>(i));
    }
  }
  ~WeightDesk() {
    for (const std::string& violation : device.violations()) FAIL_CHECK(violation);
  }

  void increase_all(std::string_view name) {
    auto iteration = manager.iteration(name);
    for (auto& weight : weights) increase(manager, weight, 1);
  }
  void chain(std::string_view name) {
    auto iteration = manager.iteration(name);
    for (std::size_t i = 1; i < weights.size(); ++i) add(manager, weights[i - 1], weights[i], 1);
  }
  [[nodiscard]] Report report() { return manager.report(); }
  [[nodiscard]] std::uint64_t followed() { return report().iterations_followed; }

  Simulated device;
  MemoryManager<Simulated> manager;
  std::vector<Tensor<int, Simulated>> weights;
};

}  // namespace swapmm::test
