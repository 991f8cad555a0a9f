// SPDX-License-Identifier: Apache-2.0
// Training in less memory than it needs: the same bits as with all of it, and as without swapmm.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <swapmm/ir/liveness.hpp>
#include <swapmm/swapmm.hpp>

#include "fashion_mnist/network.hpp"
#include "neural/device.hpp"
#include "neural/pictures.hpp"
#include "neural/raw_network.hpp"
#include "neural/training_run.hpp"
#include "support/steady_plans.hpp"

namespace {

using namespace swapmm;
using namespace swapmm::literals;
using test::Batch;
using Network = fashion::Network<test::Math>;

constexpr std::uint32_t steps = 6;
constexpr float rate = 0.05F;

// Large enough that activations are most of the memory.
fashion::Settings settings() {
  fashion::Settings settings = test::small_settings();
  settings.batch = 32;
  settings.parts = 4;
  settings.channels = 8;
  return settings;
}

using Run = test::TrainingRun;

Run train(Bytes budget) { return test::train<Network>(settings(), steps, rate, budget); }

// The rest of the program is the same with every budget.
const Run& with_all_memory() {
  static const auto& run = *new Run(train(64_MiB));
  return run;
}

}  // namespace

TEST_CASE("training in half and in a quarter of its memory gives the same bits, on demand and by the plan") {
  const Run& all = with_all_memory();
  CHECK(all.report.iterations_followed > 0);
  CHECK(all.loss > 0.5F);
  CHECK(all.loss < 4);
  for (const std::uint64_t part : {2U, 4U}) {
    CAPTURE(part);
    const Bytes budget = round_down(Bytes{all.live.peak.value / part}, Bytes{4096});
    const Run run = train(budget);
    CHECK(test::same_bits(run.weights, all.weights));
    CHECK(run.loss == all.loss);
    CHECK(run.report.iterations_followed > 0);
    CHECK(run.report.iterations_on_demand > 0);
    CHECK(run.report.divergences == 0);
    CHECK(run.report.swap_outs > 10);
    CHECK(run.report.device_peak <= budget);
  }
}

TEST_CASE("so does training by a library's own convolutions, where there is one") {
  for (test::Math* const math : test::maths()) {
    const Run all = test::train<Network>(settings(), steps, rate, 64_MiB, 2, *math);
    const Run half = test::train<Network>(settings(), steps, rate, Bytes{all.live.peak.value / 2}, 2, *math);
    CHECK(test::same_bits(half.weights, all.weights));
    CHECK(half.report.swap_outs > 10);
    CHECK(test::distance(all.weights, with_all_memory().weights) < 1e-4);
  }
}

TEST_CASE("and if operations of the forward pass run again instead of copies") {
  const Run& all = with_all_memory();
  SchedulerOptions options;
  options.machine.emplace();
  options.machine->h2d.bytes_per_second = options.machine->d2h.bytes_per_second = 5'000'000;
  fashion::Settings replayable = settings();
  replayable.replayable = true;
  const Bytes budget = round_down(Bytes{all.live.peak.value / 2}, Bytes{4096});
  MemoryManager manager(test::shared_backend(), {.device_budget = budget}, test::steady_plans(options));
  Network network(test::math(), manager, replayable);
  for (std::uint32_t step = 0; step < steps; ++step) {
    const Batch batch = test::batch(replayable.batch, step);
    network.train(batch.images, batch.labels, rate);
  }
  manager.synchronize();
  const Report report = manager.report();
  REQUIRE(!report.plans.empty());
  CHECK(report.plans.front().replays > 0);
  CHECK(report.iterations_followed > 0);
  CHECK(report.divergences == 0);
  CHECK(report.device_peak <= budget);
  CHECK(network.take_loss() == all.loss);
  CHECK(test::same_bits(network.weights(), all.weights));
}

TEST_CASE("and the same bits as a program without swapmm") {
  test::RawNetwork raw(test::math(), settings());
  const std::vector<float> before = raw.weights();
  for (std::uint32_t step = 0; step < steps; ++step) {
    const Batch batch = test::batch(settings().batch, step);
    raw.train(batch.images, batch.labels, rate);
  }
  const std::vector<float> weights = raw.weights();
  CHECK(test::distance(before, weights) > 0.01);
  CHECK(test::same_bits(with_all_memory().weights, weights));
}

TEST_CASE("evaluations, and taking the loss, between steps leave the plans and the bits as they are") {
  const Run& all = with_all_memory();
  MemoryManager manager(test::shared_backend(), {.device_budget = Bytes{all.live.peak.value / 4}},
                        test::steady_plans());
  Network network(test::math(), manager, settings());
  std::uint64_t followed = 0;
  for (std::uint32_t step = 0; step < steps; ++step) {
    const Batch batch = test::batch(settings().batch, step);
    network.train(batch.images, batch.labels, rate);
    if (step % 2 == 1) CHECK(network.take_loss() > 0);
    followed = manager.report().iterations_followed;
    if (step % 3 == 2) CHECK(network.count_right(batch.images, batch.labels) <= settings().batch);
  }
  CHECK(followed > 0);
  CHECK(manager.report().divergences == 0);
  CHECK(test::same_bits(network.weights(), all.weights));
}

TEST_CASE("nobody makes a buffer of the device behind the budget") {
  const Run& all = with_all_memory();
  MemoryManager manager(test::shared_backend(), {.device_budget = Bytes{all.live.peak.value / 2}},
                        test::steady_plans());
  Network network(test::math(), manager, settings());
  const test::DeviceCalls all_calls;
  std::optional<test::DeviceCalls> settled;
  constexpr std::uint32_t observed = 4;
  for (std::uint32_t step = 0; step < observed + 4; ++step) {
    if (step == observed) settled.emplace();
    const Batch batch = test::batch(settings().batch, step);
    network.train(batch.images, batch.labels, rate);
  }
  manager.synchronize();
  CHECK(manager.report().iterations_followed >= 4);
  all_calls.check_no_bytes(std::uint64_t{8} * 130);  // all that there is was made with the manager
  settled->check_no_buffers();
}
