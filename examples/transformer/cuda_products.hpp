// SPDX-License-Identifier: Apache-2.0
#pragma once

// The products of shapes.hpp for a library whose matrices lie column by column. No part of CUDA is needed here.

#include <algorithm>
#include <cstddef>
#include <limits>
#include <stdexcept>

#include "neural/cuda_gemm.hpp"
#include "transformer/shapes.hpp"

namespace transformer {

/// As neural::column_major() says, for matrices that begin anywhere and have gaps: `left` is b, `right` is a. Throws
/// std::length_error for more than a 32-bit number counts.
[[nodiscard]] inline neural::ColumnMajorGemm column_major(const Product& p) {
  neural::ColumnMajorGemm result = neural::column_major(
      neural::Gemm{.transpose_a = p.transpose_a, .transpose_b = p.transpose_b, .m = p.m, .n = p.n, .k = p.k});
  if (std::max({p.a.row, p.b.row, p.c.row, p.count}) > static_cast<std::size_t>(std::numeric_limits<int>::max())) {
    throw std::length_error("rows of a product are further apart than cuBLAS counts");
  }
  result.left_stride = static_cast<int>(p.b.row);
  result.right_stride = static_cast<int>(p.a.row);
  result.result_stride = static_cast<int>(p.c.row);
  return result;
}

}  // namespace transformer
