// SPDX-License-Identifier: Apache-2.0
#pragma once

// Products of matrices that lie row by row, by a library for which they lie column by column. No part of CUDA is needed
// here.

#include <algorithm>
#include <cstddef>
#include <limits>
#include <stdexcept>
#include <string>

#include "neural/shapes.hpp"

namespace neural {

/// result = left * right as the library sees it: rows x columns numbers, sums of `depth` products. A stride is the
/// distance from one column to the next, in numbers.
struct ColumnMajorGemm {
  bool transpose_left = false;
  bool transpose_right = false;
  int rows = 1;
  int columns = 1;
  int depth = 1;
  int left_stride = 1;
  int right_stride = 1;
  int result_stride = 1;
};

/// Read column by column, each matrix is its own transpose: c^T = b^T * a^T. So `left` is b, `right` is a, and both are
/// transposed exactly where they were. Throws std::length_error for more than a 32-bit number counts.
[[nodiscard]] inline ColumnMajorGemm column_major(const Gemm& g) {
  if (std::max({g.m, g.n, g.k}) > static_cast<std::size_t>(std::numeric_limits<int>::max())) {
    throw std::length_error("a product of " + std::to_string(g.m) + " x " + std::to_string(g.n) + " x " +
                            std::to_string(g.k) + " is more than cuBLAS counts");
  }
  const auto narrow = [](std::size_t count) { return static_cast<int>(count); };
  return {.transpose_left = g.transpose_b,
          .transpose_right = g.transpose_a,
          .rows = narrow(g.n),
          .columns = narrow(g.m),
          .depth = narrow(g.k),
          // Numbers per row, as the matrices lie in memory.
          .left_stride = narrow(g.transpose_b ? g.k : g.n),
          .right_stride = narrow(g.transpose_a ? g.m : g.k),
          .result_stride = narrow(g.n)};
}

/// Bytes of work area for this product: `recommended`, but no more than a quarter of what its matrices take, for a work
/// area is part of a bundle; and 16 KiB at least, without which some of cuBLAS' routines fail. The same product always
/// gets the same, and so gives the same bits.
[[nodiscard]] inline std::size_t gemm_work_bytes(const Gemm& g, std::size_t recommended) {
  constexpr std::size_t least = std::size_t{16} << 10U;
  const std::size_t matrices = (g.m * g.k + g.k * g.n + g.m * g.n) * sizeof(float);
  return std::clamp(matrices / 4 / 256 * 256, least, std::max(least, recommended));
}

}  // namespace neural
