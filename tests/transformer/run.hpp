// SPDX-License-Identifier: Apache-2.0
#pragma once

// A few steps of a small stack on the simulated device, within a budget, and what is left of them.

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include <swapmm/ir/liveness.hpp>
#include <swapmm/swapmm.hpp>

#include "transformer/host_math.hpp"
#include "transformer/network.hpp"

namespace swapmm::test {

inline constexpr transformer::Settings small_stack{.layers = 3, .width = 12, .heads = 3, .sequence = 7, .batch = 2};

struct StackRun {
  std::vector<float> weights;
  double loss = 0;
  std::uint64_t digest = 0;
  Report report;
  Liveness live;  ///< where it was observed
  std::uint64_t violations = 0;
};

[[nodiscard]] inline simulated::Options stack_device(simulated::Order order, std::uint64_t seed = 1) {
  simulated::Options options;
  options.device_bytes = Bytes{std::uint64_t{8} << 20U};
  options.order = order;
  options.seed = seed;
  return options;
}

/// `observe`: iterations before there is a plan; 0: never. `replayable`: the forward pass may run again.
[[nodiscard]] inline StackRun run_stack(const Options& options, std::size_t observe, int steps, float rate,
                                        const simulated::Options& device, bool replayable = false) {
  HostMath<float> math;
  simulated::Backend backend(device);
  StackRun run;
  {
    MemoryManager manager(backend, options, Scheduler({.observe = observe}));
    transformer::Settings settings = small_stack;
    settings.replayable = replayable;
    transformer::Network<HostMath<float>> network(math, manager, settings);
    for (int step = 0; step < steps; ++step) network.train(rate);
    manager.synchronize();
    run.report = manager.report();
    if (observe > 0) {
      const auto trace = manager.scheduler().trace("train");
      REQUIRE(trace.has_value());
      run.live = analyze_liveness(*trace, backend.capabilities().alignment);
    }
    run.loss = network.last_loss();
    run.digest = network.digest();
    network.for_each_weight([&](const auto& weights) {
      const std::vector<float> values = weights.download();
      run.weights.insert(run.weights.end(), values.begin(), values.end());
    });
  }
  run.violations = backend.violation_count();
  return run;
}

}  // namespace swapmm::test
