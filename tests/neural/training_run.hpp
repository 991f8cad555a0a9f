// SPDX-License-Identifier: Apache-2.0
#pragma once

// Some steps of a network on the device, within a budget, and what is left of them.

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include <swapmm/ir/liveness.hpp>
#include <swapmm/swapmm.hpp>

#include "neural/device.hpp"
#include "neural/pictures.hpp"
#include "support/steady_plans.hpp"

namespace swapmm::test {

struct TrainingRun {
  std::vector<float> weights;
  float loss = 0;
  Report report;
  Liveness live;
};

/// `observe`: iterations before there is a plan.
template <class Network, class Settings>
TrainingRun train(const Settings& settings, std::uint32_t steps, float rate, Bytes budget, std::size_t observe = 2,
                  Math& by = math()) {
  MemoryManager manager(shared_backend(), {.device_budget = budget}, steady_plans({.observe = observe}));
  Network network(by, manager, settings);
  for (std::uint32_t step = 0; step < steps; ++step) {
    const Batch batch = test::batch(settings.batch, step);
    network.train(batch.images, batch.labels, rate);
  }
  manager.synchronize();
  const Report report = manager.report();
  const auto trace = manager.scheduler().trace("train");
  REQUIRE(trace.has_value());
  return {network.weights(), network.take_loss(), report,
          analyze_liveness(*trace, shared_backend().capabilities().alignment)};
}

}  // namespace swapmm::test
