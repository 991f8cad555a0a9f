// SPDX-License-Identifier: Apache-2.0
// The network against a plain one in double: what it answers, its loss, its gradients by finite differences, and what
// momentum makes of them.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include <swapmm/swapmm.hpp>

#include "fashion_mnist/network.hpp"
#include "neural/device.hpp"
#include "neural/pictures.hpp"
#include "neural/reference_network.hpp"

namespace {

using namespace swapmm;
using namespace swapmm::literals;
using test::Batch;
using Network = fashion::Network<test::Math>;

double slope(const test::ReferenceNetwork& reference, std::vector<double> parameters, std::size_t i,
             const Batch& batch) {
  constexpr double step = 1e-6;
  const double here = parameters[i];
  parameters[i] = here + step;
  const double above = reference.loss(parameters, batch.images, batch.labels);
  parameters[i] = here - step;
  return (above - reference.loss(parameters, batch.images, batch.labels)) / (2 * step);
}

// The first and last parameter of each tensor, and some between.
std::vector<std::size_t> some_of(std::size_t begin, std::size_t end) {
  std::set<std::size_t> chosen{begin, end - 1};
  for (std::size_t i = 1; i <= 4; ++i) chosen.insert(begin + (end - begin) * i * 37 / 199);
  return {chosen.begin(), chosen.end()};
}

}  // namespace

namespace {

void compare_with_plain_network(test::Math& math) {
  const fashion::Settings settings = test::small_settings();
  const test::ReferenceNetwork reference(settings);
  MemoryManager manager(test::shared_backend(), {.device_budget = 64_MiB});
  Network network(math, manager, settings);
  constexpr float rate = 0.0625F;  // a power of 2: dividing by it is exact

  // Biases of 0 would put many numbers right where a ReLU bends.
  std::vector<float> weights = network.weights();
  const std::vector<std::size_t> begins = reference.begins();
  REQUIRE(weights.size() == begins.back());
  for (std::size_t tensor = 1; tensor + 1 < begins.size(); tensor += 2) {
    for (std::size_t i = begins[tensor]; i < begins[tensor + 1]; ++i)
      weights[i] = 0.1F + 0.01F * static_cast<float>(i % 7);
  }
  network.set_weights(weights);
  std::vector<double> velocity(weights.size());
  std::size_t compared = 0;
  for (std::uint32_t step = 1; step <= 3; ++step) {
    CAPTURE(step);
    const Batch batch = test::batch(settings.batch, step);
    const std::vector<double> parameters(weights.begin(), weights.end());
    network.train(batch.images, batch.labels, rate);
    CHECK(network.take_loss() == doctest::Approx(reference.loss(parameters, batch.images, batch.labels)).epsilon(1e-5));

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
      CHECK(largest > 1e-4);  // or the comparison says nothing
      for (const std::size_t i : some_of(begins[tensor], begins[tensor + 1])) {
        CHECK(std::abs(gradient[i] - slope(reference, parameters, i, batch)) < 1e-3 * largest + 4e-6);
        ++compared;
      }
    }
  }
  CHECK(compared >= 3 * 14 * 4);
}

}  // namespace

TEST_CASE("loss, gradients and momentum over three steps are those of a plain network in double") {
  for (test::Math* const math : test::maths()) compare_with_plain_network(*math);
}

TEST_CASE("right answers are counted, of a whole batch and of smaller ones") {
  const fashion::Settings settings = test::small_settings();
  const test::ReferenceNetwork reference(settings);
  MemoryManager manager(test::shared_backend(), {.device_budget = 64_MiB});
  Network network(test::math(), manager, settings);
  const std::vector<float> weights = network.weights();
  const std::vector<double> parameters(weights.begin(), weights.end());
  const Batch batch = test::batch(settings.batch, 5);
  std::vector<bool> right;
  Batch answered = batch;  // with labels as the network sees it, but for every third
  for (std::size_t i = 0; i < settings.batch; ++i) {
    const auto z = reference.logits(parameters, std::span(batch.images).subspan(i * 784, 784));
    const auto best = static_cast<std::uint8_t>(std::max_element(z.begin(), z.end()) - z.begin());
    right.push_back(i % 3 != 2);
    answered.labels[i] = right.back() ? best : static_cast<std::uint8_t>((best + 1) % 10);
  }
  for (std::size_t size = 1; size <= settings.batch; ++size) {
    CAPTURE(size);
    const auto exact = static_cast<std::size_t>(std::count(right.begin(), right.begin() + std::ptrdiff_t(size), true));
    CHECK(network.count_right(std::span(answered.images).first(size * 784), std::span(answered.labels).first(size)) ==
          exact);
  }
  CHECK(network.weights() == weights);
}

TEST_CASE("the mean loss is of the steps since it was last taken") {
  const fashion::Settings settings = test::small_settings();
  const test::ReferenceNetwork reference(settings);
  MemoryManager manager(test::shared_backend(), {.device_budget = 64_MiB});
  Network network(test::math(), manager, settings);
  CHECK(network.take_loss() == 0);
  const std::vector<float> weights = network.weights();
  const std::vector<double> parameters(weights.begin(), weights.end());
  double sum = 0;
  for (std::uint32_t step = 0; step < 3; ++step) {
    const Batch batch = test::batch(settings.batch, step);
    network.train(batch.images, batch.labels, 0);  // learns nothing
    sum += reference.loss(parameters, batch.images, batch.labels);
  }
  CHECK(network.take_loss() == doctest::Approx(sum / 3).epsilon(1e-5));
  CHECK(network.take_loss() == 0);
  const Batch batch = test::batch(settings.batch, 9);
  network.train(batch.images, batch.labels, 0);
  CHECK(network.take_loss() == doctest::Approx(reference.loss(parameters, batch.images, batch.labels)).epsilon(1e-5));
}

TEST_CASE("batches of another size, and settings that make no sense, are refused") {
  MemoryManager manager(test::shared_backend(), {.device_budget = 64_MiB});
  fashion::Settings settings = test::small_settings();
  Network network(test::math(), manager, settings);
  const Batch batch = test::batch(settings.batch + 1, 1);
  CHECK_THROWS_AS(network.train(batch.images, batch.labels, 0.1F), std::invalid_argument);
  CHECK_THROWS_AS((void)network.count_right(batch.images, batch.labels), std::invalid_argument);
  CHECK_THROWS_AS((void)network.count_right({}, {}), std::invalid_argument);
  CHECK_THROWS_AS((void)network.count_right(batch.images, std::span(batch.labels).first(3)), std::invalid_argument);
  settings.parts = 3;
  CHECK_THROWS_AS(Network(test::math(), manager, settings), std::invalid_argument);
}
