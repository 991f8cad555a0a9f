// SPDX-License-Identifier: Apache-2.0
// The recurrent network: its gradients against plain loops in double, and training in less memory than it needs.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <vector>

#include <swapmm/ir/liveness.hpp>
#include <swapmm/swapmm.hpp>

#include "neural/device.hpp"
#include "neural/pictures.hpp"
#include "neural/recurrent_reference.hpp"
#include "neural/training_run.hpp"
#include "sequence/recurrent.hpp"
#include "support/steady_plans.hpp"

namespace {

using namespace swapmm;
using namespace swapmm::literals;
using test::Batch;
using RecurrentNetwork = sequence::Recurrent<test::Math>;

std::vector<double> exact(const std::vector<float>& values) { return {values.begin(), values.end()}; }

}  // namespace

TEST_CASE("loss, gradients and momentum of the recurrent network over three steps are those of plain loops") {
  sequence::Settings settings;
  settings.batch = 35;  // more than the rows of one sum of the bias' gradient
  settings.hidden = 6;
  const test::RecurrentReference reference(settings.hidden);
  const std::vector<std::size_t> begins = reference.begins();
  MemoryManager manager(test::shared_backend(), {.device_budget = 16_MiB});
  RecurrentNetwork network(test::math(), manager, settings);
  constexpr float rate = 0.5F;  // a power of 2: dividing by it is exact
  std::vector<float> weights = network.weights();
  REQUIRE(weights.size() == begins.back());
  std::vector<double> velocity(weights.size());
  for (std::uint32_t step = 1; step <= 3; ++step) {
    CAPTURE(step);
    const Batch batch = test::batch(settings.batch, step);
    std::vector<double> parameters = exact(weights);
    const auto loss = [&] { return reference.loss(parameters, batch.images, batch.labels); };
    network.train(batch.images, batch.labels, rate);
    CHECK(network.take_loss() == doctest::Approx(loss()).epsilon(1e-5));

    const std::vector<float> after = network.weights();
    std::vector<double> gradient(weights.size());
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const double speed = (parameters[i] - static_cast<double>(after[i])) / static_cast<double>(rate);
      gradient[i] = speed - static_cast<double>(settings.momentum) * velocity[i];
      velocity[i] = speed;
    }
    weights = after;
    for (std::size_t tensor = 0; tensor + 1 < begins.size(); ++tensor) {
      CAPTURE(tensor);
      double largest = 0;
      for (std::size_t i = begins[tensor]; i < begins[tensor + 1]; ++i) {
        largest = std::max(largest, std::abs(gradient[i]));
      }
      CHECK(largest > 1e-3);  // or the comparison says nothing
      // Some of each gate and, where there are many, of different rows.
      const std::size_t count = begins[tensor + 1] - begins[tensor];
      for (std::size_t k = 0; k < 9; ++k) {
        const std::size_t i = begins[tensor] + (k * 37 + k * count / 9) % count;
        CAPTURE(i);
        CHECK(std::abs(gradient[i] - test::slope(loss, parameters[i])) < 1e-3 * largest + 1e-6);
      }
    }
  }
}

TEST_CASE("the recurrent network's right answers are counted, of whole batches and of smaller ones") {
  sequence::Settings settings;
  settings.batch = 9;
  settings.hidden = 6;
  const test::RecurrentReference reference(settings.hidden);
  MemoryManager manager(test::shared_backend(), {.device_budget = 16_MiB});
  RecurrentNetwork network(test::math(), manager, settings);
  const std::vector<float> weights = network.weights();
  Batch batch = test::batch(settings.batch, 5);
  std::vector<bool> right;
  for (std::size_t i = 0; i < settings.batch; ++i) {
    const auto z = reference.logits(exact(weights), std::span(batch.images).subspan(i * 784, 784));
    const auto best = static_cast<std::size_t>(std::max_element(z.begin(), z.end()) - z.begin());
    right.push_back(i % 3 != 2);
    batch.labels[i] = static_cast<std::uint8_t>(right.back() ? best : (best + 1) % 10);
  }
  for (std::size_t size = 1; size <= settings.batch; ++size) {
    CAPTURE(size);
    const auto expected = std::count(right.begin(), right.begin() + static_cast<std::ptrdiff_t>(size), true);
    CHECK(network.count_right(std::span(batch.images).first(size * 784), std::span(batch.labels).first(size)) ==
          static_cast<std::size_t>(expected));
  }
  CHECK(test::same_bits(network.weights(), weights));
}

TEST_CASE("batches of another size are refused") {
  sequence::Settings settings;
  settings.batch = 4;
  settings.hidden = 3;
  MemoryManager manager(test::shared_backend(), {.device_budget = 16_MiB});
  RecurrentNetwork network(test::math(), manager, settings);
  const Batch batch = test::batch(settings.batch + 1, 1);
  CHECK_THROWS_AS(network.train(batch.images, batch.labels, 0.1F), std::invalid_argument);
  CHECK_THROWS_AS((void)network.count_right(batch.images, batch.labels), std::invalid_argument);
  CHECK_THROWS_AS((void)network.count_right({}, {}), std::invalid_argument);
  CHECK_THROWS_AS((void)network.count_right(batch.images, std::span(batch.labels).first(3)), std::invalid_argument);
}

namespace {

constexpr std::uint32_t training_steps = 8;

// Large enough that activations are most of the memory.
sequence::Settings training_settings() {
  sequence::Settings settings;
  settings.batch = 64;
  settings.hidden = 16;
  return settings;
}

using Run = test::TrainingRun;

Run train_recurrent(Bytes budget, std::size_t observe = 2) {
  return test::train<RecurrentNetwork>(training_settings(), training_steps, 0.25F, budget, observe);
}

// The rest of the program is the same with every budget.
const Run& recurrent_with_all_memory() {
  static const auto& run = *new Run(train_recurrent(64_MiB));
  return run;
}

}  // namespace

TEST_CASE("no tensor of the recurrent network outlives its last use") {
  const Run& all = recurrent_with_all_memory();
  const std::size_t batch = training_settings().batch;
  const std::size_t hidden = training_settings().hidden;
  // Where all fits, no more is held than lives, but for rows and labels: those are the next batch's.
  const Bytes inputs{batch * (sequence::steps * sequence::filled_columns * sizeof(float) + 1)};
  const Run observed = train_recurrent(64_MiB, training_steps);
  CHECK(observed.report.device_peak <= observed.live.peak + inputs + 1_KiB);
  // By a plan each operation's work area may have a place of its own, where there is room.
  const bool no_areas = test::math().gemm_work({.m = batch, .n = 4 * hidden, .k = hidden}) == 0;
  if (no_areas) CHECK(all.report.device_peak <= all.live.peak + inputs + 1_KiB);
  CHECK(all.report.d2h == all.report.start_d2h);
  // Rows, labels, loss, right answers, five parameters and their momenta.
  CHECK(all.report.tensors == sequence::steps + 3 + 10);

  // On demand a value that still exists is copied out where room lacks, needed or not. What the steps of the way there
  // made must go; on the way back there is nothing more to keep but gradients of weights.
  const Run run = train_recurrent(Bytes{all.live.peak.value / 4}, training_steps);
  const std::size_t activations = (sequence::steps * 6 + 2) * batch * hidden * sizeof(float);
  CHECK(run.report.iterations_followed == 0);
  CHECK(run.report.d2h.value > training_steps * activations / 2);
  CHECK(run.report.d2h.value < training_steps * activations);
}

TEST_CASE("what the steps of the recurrent network make is nearly all of its memory") {
  const Run& all = recurrent_with_all_memory();
  const std::size_t batch = training_settings().batch;
  const std::size_t hidden = training_settings().hidden;
  // Of all steps gates, cells and output, and where they begin; weights and momenta; and the rows.
  const std::size_t activations = (sequence::steps * 6 + 2) * batch * hidden;
  const std::size_t rows = sequence::steps * batch * sequence::filled_columns;
  const std::size_t least = (activations + 2 * all.weights.size() + rows) * sizeof(float);
  CHECK(all.live.peak.value > least);
  CHECK(static_cast<double>(all.live.peak.value) < 1.05 * static_cast<double>(least));
  CHECK(activations * sizeof(float) * 10 > all.live.peak.value * 6);
  CHECK(all.live.largest_bundle.value * 8 < all.live.peak.value);
}

TEST_CASE("the recurrent network in less memory than it needs has the same bits, on demand and by the plan") {
  const Run& all = recurrent_with_all_memory();
  CHECK(all.report.iterations_followed > 0);
  CHECK(all.loss > 1);
  CHECK(all.loss < 3);
  for (const Bytes budget : {Bytes{all.live.peak.value / 2}, Bytes{all.live.peak.value / 4}, all.live.largest_bundle}) {
    CAPTURE(budget.value);
    const Run run = train_recurrent(budget);
    CHECK(test::same_bits(run.weights, all.weights));
    CHECK(run.loss == all.loss);
    CHECK(run.report.iterations_followed > 0);
    CHECK(run.report.iterations_on_demand > 0);
    CHECK(run.report.divergences == 0);
    CHECK(run.report.swap_outs > 10);
    CHECK(run.report.device_peak <= budget);
  }
}

TEST_CASE("a budget below the largest bundle of the recurrent network is refused") {
  CHECK_THROWS_AS(train_recurrent(recurrent_with_all_memory().live.largest_bundle - Bytes{1}), BundleTooLarge);
}

TEST_CASE("the recurrent network makes no buffer behind the budget") {
  MemoryManager manager(test::shared_backend(),
                        {.device_budget = Bytes{recurrent_with_all_memory().live.peak.value / 4}},
                        test::steady_plans());
  RecurrentNetwork network(test::math(), manager, training_settings());
  std::optional<test::DeviceCalls> settled;
  for (std::uint32_t step = 0; step < training_steps; ++step) {
    if (step == training_steps / 2) settled.emplace();
    const Batch batch = test::batch(training_settings().batch, step);
    network.train(batch.images, batch.labels, 0.25F);
  }
  manager.synchronize();
  settled->check_no_buffers();
}
