// SPDX-License-Identifier: Apache-2.0
// Layers whose weights are larger than the budget: right, the same bits with every budget, and nothing copied out.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <swapmm/ir/liveness.hpp>
#include <swapmm/swapmm.hpp>

#include "inference/stack.hpp"
#include "neural/device.hpp"
#include "support/steady_plans.hpp"

namespace {

using namespace swapmm;
using namespace swapmm::literals;
using Stack = inference::Stack<test::Math>;

constexpr std::size_t batches = 8;

inference::Settings stack_settings() {
  inference::Settings settings;
  settings.layers = 12;
  settings.width = 96;
  settings.batch = 5;
  return settings;
}

std::vector<float> inputs(std::size_t batch) {
  return test::numbers(stack_settings().batch * stack_settings().width, static_cast<std::uint32_t>(batch));
}

struct StackRun {
  std::vector<std::vector<float>> results;
  Report report;
  Liveness live;
};

StackRun infer(Bytes budget) {
  MemoryManager manager(test::shared_backend(), {.device_budget = budget}, test::steady_plans());
  Stack stack(test::math(), manager, stack_settings());
  StackRun run;
  for (std::size_t i = 0; i < batches; ++i) run.results.push_back(stack.infer(inputs(i)));
  run.report = manager.report();
  run.live =
      analyze_liveness(manager.scheduler().trace("infer").value(), test::shared_backend().capabilities().alignment);
  return run;
}

const StackRun& stack_with_all_memory() {
  static const auto& run = *new StackRun(infer(16_MiB));
  return run;
}

std::vector<double> reference(const std::vector<float>& input) {
  const std::size_t width = stack_settings().width;
  std::vector<double> x(input.begin(), input.end());
  for (std::size_t layer = 0; layer < stack_settings().layers; ++layer) {
    const std::vector<float> weights = inference::layer_weights(stack_settings(), layer);
    const std::vector<float> bias = inference::layer_bias(stack_settings(), layer);
    std::vector<double> y;
    for (std::size_t row = 0; row < stack_settings().batch; ++row) {
      for (std::size_t j = 0; j < width; ++j) {
        auto sum = static_cast<double>(bias[j]);
        for (std::size_t i = 0; i < width; ++i) sum += x[row * width + i] * static_cast<double>(weights[i * width + j]);
        y.push_back(std::max(sum, 0.0));
      }
    }
    x = std::move(y);
  }
  return x;
}

}  // namespace

TEST_CASE("the layers compute what plain loops do") {
  const StackRun& all = stack_with_all_memory();
  for (std::size_t i = 0; i < batches; ++i) {
    const std::vector<double> exact = reference(inputs(i));
    const auto zeros = std::count(exact.begin(), exact.end(), 0.0);
    CHECK(zeros > 0);
    CHECK(zeros < static_cast<std::ptrdiff_t>(exact.size()));
    CHECK(test::distance(all.results[i], exact) < 1e-5);
  }
}

TEST_CASE("layers have weights of their own") {
  CHECK(inference::layer_weights(stack_settings(), 0) != inference::layer_weights(stack_settings(), 1));
  CHECK(inference::layer_bias(stack_settings(), 0) != inference::layer_bias(stack_settings(), 1));
}

TEST_CASE("the results are the same bits with every budget, and weights are never copied out") {
  const StackRun& all = stack_with_all_memory();
  const Bytes weights = stack_settings().weights();
  // Once, beside the inputs; and once more to the places that the plan has for them.
  const Bytes inputs_of_all{batches * stack_settings().values().value};
  CHECK(all.report.h2d - all.report.start_h2d == weights + inputs_of_all);
  for (const Bytes budget : {16_MiB, Bytes{weights.value / 2}, Bytes{weights.value / 4}, all.live.largest_bundle}) {
    CAPTURE(budget.value);
    const StackRun run = infer(budget);
    CHECK(run.results == all.results);
    CHECK(run.report.iterations_followed > 0);
    CHECK(run.report.divergences == 0);
    CHECK(run.report.device_peak <= budget);
    // A result per batch is all that leaves the device.
    CHECK(run.report.swap_outs == batches);
    CHECK(run.report.d2h == Bytes{batches * stack_settings().values().value});
    if (budget < weights) CHECK(run.report.h2d > Bytes{batches * (weights - budget).value});
  }
}

TEST_CASE("a budget below the largest bundle of the layers is refused") {
  CHECK_THROWS_AS(infer(stack_with_all_memory().live.largest_bundle - Bytes{1}), BundleTooLarge);
}
