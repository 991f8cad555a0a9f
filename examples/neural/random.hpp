// SPDX-License-Identifier: Apache-2.0
#pragma once

// Numbers from a seed, the same with every compiler and library: std::mt19937 is defined to the bit, the standard's
// distributions and std::shuffle are not.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

namespace neural {

/// About normally distributed numbers, mean 0 and deviation sqrt(2 / fan_in): what keeps values from fading or growing
/// from layer to layer of ReLUs (He et al., "Delving deep into rectifiers", 2015).
[[nodiscard]] inline std::vector<float> he_values(std::size_t count, std::size_t fan_in, std::mt19937& random) {
  const double deviation = std::sqrt(2.0 / static_cast<double>(fan_in));
  std::vector<float> values(count);
  for (float& value : values) {
    double sum = -6;  // of twelve uniform numbers: deviation 1
    for (int i = 0; i < 12; ++i) sum += static_cast<double>(random()) / 4294967296.0;
    value = static_cast<float>(deviation * sum);
  }
  return values;
}

/// The numbers from 0 to count - 1 in an order of that seed.
[[nodiscard]] inline std::vector<std::uint32_t> shuffled(std::size_t count, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<std::uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0U);
  for (std::size_t i = count; i > 1; --i) {
    const auto other = static_cast<std::size_t>((std::uint64_t{random()} * i) >> 32U);
    std::swap(order[i - 1], order[other]);
  }
  return order;
}

/// How far each step goes: up to `peak` over the first tenth of all steps, then straight down to 0.
[[nodiscard]] inline float rate(std::size_t step, std::size_t steps, float peak) {
  const std::size_t warm_up = steps / 10 > 0 ? steps / 10 : 1;
  if (step < warm_up) return peak * static_cast<float>(step + 1) / static_cast<float>(warm_up);
  return step >= steps ? 0.0F : peak * static_cast<float>(steps - step) / static_cast<float>(steps - warm_up);
}

}  // namespace neural
