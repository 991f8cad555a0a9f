// SPDX-License-Identifier: Apache-2.0
// Replicas of the demo's network: with the bits of one device that adds up their gradients in the same order.
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include <swapmm/swapmm.hpp>

#include "fashion_mnist/replica_training.hpp"
#include "neural/device.hpp"
#include "neural/pictures.hpp"
#include "support/steady_plans.hpp"

namespace swapmm::test::replicas_test {
using namespace swapmm::literals;

constexpr std::uint32_t all_steps = 6;  // those that are observed, and some by the plan
constexpr float rate = 0.05F;

fashion::Settings settings(std::size_t replicas) {
  fashion::Settings settings = small_settings();
  settings.batch = 20;  // not the same number of images for three replicas
  settings.pieces = replicas;
  return settings;
}

std::vector<float> on_one_device(std::size_t replicas) {
  MemoryManager manager(shared_backend(), {.device_budget = 32_MiB});
  fashion::Network<Math> network(math(), manager, settings(replicas));
  for (std::uint32_t step = 0; step < all_steps; ++step) {
    const Batch batch = test::batch(20, step);
    network.train_in_turn(batch.images, batch.labels, rate);
  }
  return network.weights();
}

TEST_CASE(
    "replicas that share a device, in little memory, have the bits of one device that adds up in the same order") {
  const neural::Pictures pictures{test::batch(20, 0).images, test::batch(20, 0).labels};
  fashion::Curriculum curriculum(pictures, 20, 1);  // batches come from elsewhere
  for (const std::size_t count : {2U, 3U}) {
    const std::vector<float> expected = on_one_device(count);
    ReplicaOptions options;
    options.layers_per_chunk = count;
    fashion::ReplicaTraining<Math> training(std::vector<Math*>(count, &math()), settings(count),
                                            {0, std::vector<Bytes>(count, 400_KiB)}, steady({.planner = "belady"}),
                                            options, curriculum);
    for (std::uint32_t step = 0; step < all_steps; ++step) {
      const Batch batch = test::batch(20, step);
      training.train(batch.images, batch.labels, rate);
    }
    for (std::size_t i = 0; i < count; ++i) {
      CHECK(same_bits(training.network(i).weights(), expected));
      const Report report = training.manager(i).report();
      CHECK(report.swap_outs > 10);
      CHECK(report.device_peak <= 400_KiB);
      CHECK(report.iterations_followed > 0);
      CHECK(report.divergences == 0);
    }
  }
}

}  // namespace swapmm::test::replicas_test
