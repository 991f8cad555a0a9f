// SPDX-License-Identifier: Apache-2.0
#pragma once

// Numbers from a seed, the same with every compiler and library: std::mt19937_64 is defined to the bit.

#include <cstddef>
#include <random>
#include <vector>

namespace networks {

/// A number below `limit`, which is small.
[[nodiscard]] inline std::size_t below(std::mt19937_64& random, std::size_t limit) { return random() % limit; }

/// First weights: uniform numbers between -range and range.
[[nodiscard]] inline std::vector<float> random_weights(std::size_t count, float range, std::mt19937_64& random) {
  std::vector<float> weights(count);
  for (float& weight : weights) {
    weight = (static_cast<float>(random() >> 40U) / static_cast<float>(1U << 24U) - 0.5F) * (2 * range);
  }
  return weights;
}

}  // namespace networks
