// SPDX-License-Identifier: Apache-2.0
#pragma once

// How long steps of replicas take on simulated devices, in virtual time: with a host that needs time, too.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <swapmm/backend/testing/simulated.hpp>
#include <swapmm/replicas.hpp>

#include "support/replica_network.hpp"

namespace swapmm::test {

/// What a sum of one chunk takes on the host.
struct HostTime {
  std::chrono::nanoseconds per_chunk{0};           ///< messages to other machines, threads that wake up
  std::uint64_t bytes_per_second = 8'000'000'000;  ///< of the gradients of all replicas
};

/// Replicas, all of the same layers, and their host.
struct ReplicaTiming {
  std::vector<ReplicaLayer> layers;
  SimulatedReplicas::Setting setting;
  HostTime host;
};

class TimedReplicas {
 public:
  explicit TimedReplicas(ReplicaTiming timing) : timing_(std::move(timing)), all_(timing_.layers, timing_.setting) {}

  void step() {
    std::size_t chunk = SIZE_MAX;
    all_.step([&](const SummedLayer<float>& sum) {
      if (sum.chunk == chunk) return;
      chunk = sum.chunk;
      pass(time_of_chunk(chunk));
    });
  }
  /// The time that so many steps take.
  [[nodiscard]] std::chrono::nanoseconds time(std::size_t steps) {
    const std::chrono::nanoseconds begin = now();
    for (std::size_t i = 0; i < steps; ++i) step();
    return (now() - begin) / static_cast<std::int64_t>(steps);
  }
  [[nodiscard]] const Replicas<float, simulated::Backend>& replicas() { return all_.replicas(); }

 private:
  // One thread runs all replicas: it is never earlier on one device than on another.
  [[nodiscard]] std::chrono::nanoseconds now() {
    std::chrono::nanoseconds latest{0};
    for (std::size_t i = 0; i < timing_.setting.replicas; ++i) latest = std::max(latest, all_.device(i).now());
    return latest;
  }
  void pass(std::chrono::nanoseconds time) {
    const std::chrono::nanoseconds until = now() + time;
    for (std::size_t i = 0; i < timing_.setting.replicas; ++i) all_.device(i).pass_time(until);
  }
  [[nodiscard]] std::chrono::nanoseconds time_of_chunk(std::size_t chunk) const {
    const std::size_t size = all_.replicas().layers_per_chunk();
    const std::size_t layers = timing_.layers.size();
    std::uint64_t bytes = 0;
    for (std::size_t i = chunk * size; i < std::min(layers, (chunk + 1) * size); ++i) {
      const ReplicaLayer& layer = timing_.layers[layers - 1 - i];
      bytes += (layer.weights + layer.bias) * sizeof(float) * timing_.setting.replicas;
    }
    const double seconds = static_cast<double>(bytes) / static_cast<double>(timing_.host.bytes_per_second);
    return timing_.host.per_chunk + std::chrono::nanoseconds{static_cast<std::int64_t>(seconds * 1e9)};
  }

  ReplicaTiming timing_;
  SimulatedReplicas all_;
};

/// Steps before a plan is followed and its times are steady.
inline constexpr std::size_t unsteady_steps = 6;

/// The time of a step with chunks of that size.
[[nodiscard]] inline std::chrono::nanoseconds time_with(ReplicaTiming timing, std::size_t layers_per_chunk,
                                                        std::size_t steps = 4) {
  timing.setting.options.layers_per_chunk = layers_per_chunk;
  TimedReplicas replicas(std::move(timing));
  (void)replicas.time(unsteady_steps);
  return replicas.time(steps);
}

/// The time of a step of one replica that learns from its own gradients, which stay on the device: what is left of a
/// step where the synchronisation takes no time at all.
[[nodiscard]] inline std::chrono::nanoseconds time_without_sums(const ReplicaTiming& timing, std::size_t steps = 4) {
  simulated::Backend device(timing.setting.device);
  MemoryManager<simulated::Backend> manager(device, {.device_budget = timing.setting.budget},
                                            Scheduler(timing.setting.scheduler));
  ReplicaNetwork network(manager, timing.layers);
  std::size_t step = 0;
  const auto run = [&](std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) learn_on_one_device(network, step++, 1);
    manager.synchronize();
  };
  run(unsteady_steps);
  const std::chrono::nanoseconds begin = device.now();
  run(steps);
  return (device.now() - begin) / static_cast<std::int64_t>(steps);
}

/// Twelve equal layers whose gradients take 8 us to copy, on devices that have room for all; only the host's time per
/// chunk differs.
[[nodiscard]] inline ReplicaTiming twelve_layers(std::size_t replicas, std::chrono::nanoseconds per_chunk) {
  using namespace std::chrono_literals;
  ReplicaTiming timing;
  timing.layers.assign(12, {.weights = 1024, .bias = 0, .width = 64, .forward = 20us, .backward = 40us});
  timing.setting.replicas = replicas;
  timing.setting.budget = Bytes{512U << 10U};
  timing.setting.device.device_bytes = timing.setting.budget;
  timing.setting.device.check = false;
  timing.setting.device.h2d = {.bytes_per_second = 680'000'000, .latency = 2us};
  timing.setting.device.d2h = timing.setting.device.h2d;
  timing.host = {.per_chunk = per_chunk, .bytes_per_second = 600'000'000};
  return timing;
}

}  // namespace swapmm::test
