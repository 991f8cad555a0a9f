// SPDX-License-Identifier: Apache-2.0
#pragma once

// Products of a vector and a matrix, as loops. Matrices are row-major, with a row for each element of x and a column
// for each element of y. Each result is summed in one fixed order, so the same inputs give the same bits wherever the
// loops run.

#include <cstddef>
#include <span>

namespace networks {

/// y += x * weights
inline void add_product(std::span<const float> x, std::span<const float> weights, std::span<float> y) {
  for (std::size_t i = 0; i < x.size(); ++i) {
    for (std::size_t j = 0; j < y.size(); ++j) y[j] += x[i] * weights[i * y.size() + j];
  }
}

/// x += y * transposed weights
inline void add_transposed_product(std::span<const float> y, std::span<const float> weights, std::span<float> x) {
  for (std::size_t i = 0; i < x.size(); ++i) {
    float sum = 0;
    for (std::size_t j = 0; j < y.size(); ++j) sum += y[j] * weights[i * y.size() + j];
    x[i] += sum;
  }
}

/// weights += outer product of x and y
inline void add_outer_product(std::span<const float> x, std::span<const float> y, std::span<float> weights) {
  for (std::size_t i = 0; i < x.size(); ++i) {
    for (std::size_t j = 0; j < y.size(); ++j) weights[i * y.size() + j] += x[i] * y[j];
  }
}

}  // namespace networks
