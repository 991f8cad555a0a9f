// SPDX-License-Identifier: Apache-2.0
// Training with the batch in pieces: where the whole batch is too large for the device, with the same bits as without a
// limit.
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include <swapmm/ir/liveness.hpp>
#include <swapmm/split.hpp>
#include <swapmm/swapmm.hpp>

#include "fashion_mnist/network.hpp"
#include "neural/device.hpp"
#include "neural/pictures.hpp"
#include "support/steady_plans.hpp"

namespace swapmm::test::split_test {
using namespace swapmm::literals;
using Network = fashion::Network<Math>;

constexpr std::uint32_t all_steps = 6;  // those that are observed, and some by the plan
constexpr float rate = 0.05F;

fashion::Settings settings(std::size_t pieces) {
  fashion::Settings settings = small_settings();
  settings.batch = 32;
  settings.parts = 1;
  settings.channels = 8;
  settings.pieces = pieces;
  return settings;
}

struct SplitRun {
  std::vector<float> weights;
  float loss = 0;
  Report report;
  std::size_t pieces = 0;
  Bytes largest_bundle;
};

SplitRun train(Bytes budget, SplitOptions options, std::uint32_t steps = all_steps) {
  MemoryManager manager(shared_backend(), {.device_budget = budget}, steady_plans({.planner = "belady"}));
  Network network(math(), manager, settings(options.pieces == 0 ? 1 : options.pieces));
  options.batch = network.settings().batch;
  Split split(manager, "train", options);
  for (std::uint32_t step = 0; step < steps; ++step) {
    const Batch batch = test::batch(options.batch, step);
    network.train(split, batch.images, batch.labels, rate);
  }
  manager.synchronize();
  const Report report = manager.report();
  const auto trace = manager.scheduler().trace("train");
  REQUIRE(trace.has_value());
  const Liveness live = analyze_liveness(*trace, shared_backend().capabilities().alignment);
  return {network.weights(), network.take_loss(), report, split.pieces(), live.largest_bundle};
}

/// The budget in which four pieces work, and not half as many.
Bytes small_budget() {
  static const Bytes largest = train(64_MiB, {.pieces = 4}, 2).largest_bundle;
  return Bytes{largest.value * 3 / 2};
}

TEST_CASE("in four pieces a network learns where its whole batch is too large, with the same bits as without a limit") {
  MemoryManager manager(shared_backend(), {.device_budget = small_budget()});
  Network network(math(), manager, settings(1));
  const Batch batch = test::batch(32, 0);
  CHECK_THROWS_AS(network.train(batch.images, batch.labels, rate), BundleTooLarge);

  const SplitRun all = train(64_MiB, {.pieces = 4});
  const SplitRun some = train(small_budget(), {.pieces = 4});
  CHECK(same_bits(some.weights, all.weights));
  CHECK(some.loss == all.loss);
  CHECK(some.report.device_peak <= small_budget());
  CHECK(some.report.swap_outs > 10);
  CHECK(some.report.iterations_followed > 0);
  CHECK(some.report.divergences == 0);
  CHECK(all.report.swap_outs < some.report.swap_outs);
}

TEST_CASE("any number of pieces learns what the whole batch learns, up to rounding") {
  const SplitRun whole = train(64_MiB, {.pieces = 1}, 2);
  for (const std::size_t pieces : {4U, 5U}) {  // 32 are 7 + 7 + 6 + 6 + 6
    const SplitRun split = train(64_MiB, {.pieces = pieces}, 2);
    CHECK(distance(split.weights, whole.weights) < 1e-4);
    CHECK(split.loss == doctest::Approx(whole.loss).epsilon(1e-4));
  }
}

TEST_CASE("the number of pieces is chosen by the budget, and the choice is the same bit for bit without a limit") {
  const SplitRun some = train(small_budget(), {.observed_samples = 2});
  CHECK(some.pieces >= 3);
  CHECK(some.report.device_peak <= small_budget());
  // The same pieces, those that were observed included.
  const SplitRun all = train(64_MiB, {.observed_samples = 2, .choice = {.most_tries = 1, .least_pieces = some.pieces}});
  CHECK(all.pieces == some.pieces);
  CHECK(same_bits(some.weights, all.weights));
}

}  // namespace swapmm::test::split_test
