// SPDX-License-Identifier: Apache-2.0
// The way back through a stack of blocks, against differences of its loss, in 64 bits.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include <swapmm/swapmm.hpp>

#include "transformer/host_math.hpp"
#include "transformer/network.hpp"

namespace {

using namespace swapmm;
using Math = test::HostMath<double>;

struct Stack {
  explicit Stack(const transformer::Settings& settings) : network(math, manager, settings) {}

  [[nodiscard]] double loss() {
    network.train(0);
    return network.last_loss();
  }
  // Each weight tensor's value.
  [[nodiscard]] std::vector<std::vector<double>> weights() {
    std::vector<std::vector<double>> all;
    network.for_each_weight([&](const auto& tensor) { all.push_back(tensor.download()); });
    return all;
  }
  void set(std::size_t which, const std::vector<double>& value) {
    std::size_t i = 0;
    network.for_each_weight([&](auto& tensor) {
      if (i++ == which) tensor.upload(value);
    });
  }

  static simulated::Options device() {
    simulated::Options options;
    options.device_bytes = Bytes{std::uint64_t{4} << 20U};
    options.check = false;
    return options;
  }
  Math math;
  simulated::Backend backend{device()};
  MemoryManager<simulated::Backend> manager{
      backend, {.device_budget = Bytes{std::uint64_t{2} << 20U}}, Scheduler({.observe = 0})};
  transformer::Network<Math> network;
};

}  // namespace

TEST_CASE("the gradient of each kind of weight is the slope of the loss") {
  Stack stack({.layers = 2, .width = 6, .heads = 2, .sequence = 5, .batch = 2});
  const auto before = stack.weights();
  REQUIRE(before.size() == 2 * 6);
  // One step at a rate of 1 moves each weight by its gradient.
  stack.network.train(1);
  const auto after = stack.weights();
  for (std::size_t which = 0; which < before.size(); ++which) stack.set(which, before[which]);

  double largest = 0;
  for (std::size_t which = 0; which < before.size(); ++which) {
    const std::size_t count = before[which].size();
    double largest_here = 0;
    for (std::size_t sample = 0; sample < 6; ++sample) {
      const std::size_t i = (sample * 2 + 1) * count / 12;
      const double gradient = before[which][i] - after[which][i];
      constexpr double step = 1e-5;
      std::vector<double> moved = before[which];
      moved[i] += step;
      stack.set(which, moved);
      const double above = stack.loss();
      moved[i] -= 2 * step;
      stack.set(which, moved);
      const double below = stack.loss();
      stack.set(which, before[which]);
      const double slope = (above - below) / (2 * step);
      CAPTURE(which);
      CAPTURE(i);
      CHECK(gradient == doctest::Approx(slope).epsilon(1e-5).scale(1e-3));
      largest_here = std::max(largest_here, std::abs(slope));
    }
    CHECK(largest_here > 1e-4);  // every kind has a slope to speak of
    largest = std::max(largest, largest_here);
  }
  CHECK(largest > 0.01);
}

TEST_CASE("a stack learns: steps against the slope make the loss smaller") {
  Stack stack({.layers = 2, .width = 8, .heads = 2, .sequence = 4, .batch = 2});
  const double first = stack.loss();
  for (int step = 0; step < 20; ++step) stack.network.train(0.2F);
  const double last = stack.network.last_loss();
  CHECK(last < 0.7 * first);
  CHECK(last > 0);
}

TEST_CASE("settings that make no sense are refused") {
  CHECK_THROWS_WITH_AS(Stack({.width = 10, .heads = 3}),
                       "layers, width, heads, sequence and batch are at least 1, and the width divides into heads",
                       std::invalid_argument);
  CHECK_THROWS_AS(Stack({.layers = 0}), std::invalid_argument);
}
