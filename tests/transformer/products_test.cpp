// SPDX-License-Identifier: Apache-2.0
// Products as the library gets them: against one written down column by column, which takes the library's arguments.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <random>
#include <stdexcept>
#include <vector>

#include "transformer/bfloat16.h"
#include "transformer/cuda_products.hpp"
#include "transformer/shapes.hpp"

namespace {

using transformer::Product;

using Numbers = std::vector<double>;

Numbers random_numbers(std::size_t count, std::uint32_t seed) {
  std::mt19937 random(seed);
  Numbers values(count);
  for (double& value : values) value = static_cast<double>(random() % 21) - 10;
  return values;
}

// What BLAS defines: matrices column by column.
void library(const neural::ColumnMajorGemm& g, double alpha, const double* left, const double* right, double beta,
             double* result) {
  const auto at = [](int stride, int row, int column) {
    return static_cast<std::size_t>(column) * static_cast<std::size_t>(stride) + static_cast<std::size_t>(row);
  };
  for (int column = 0; column < g.columns; ++column) {
    for (int row = 0; row < g.rows; ++row) {
      double sum = 0;
      for (int k = 0; k < g.depth; ++k) {
        sum += left[g.transpose_left ? at(g.left_stride, k, row) : at(g.left_stride, row, k)] *
               right[g.transpose_right ? at(g.right_stride, column, k) : at(g.right_stride, k, column)];
      }
      double& to = result[at(g.result_stride, row, column)];
      to = alpha * sum + (beta == 0 ? 0 : beta * to);
    }
  }
}

// What the product says: matrices row by row.
void expected(const Product& p, const Numbers& a, const Numbers& b, Numbers& c) {
  for (std::size_t which = 0; which < p.count; ++which) {
    const double* const left = a.data() + p.a.first + which * p.a.stride;
    const double* const right = b.data() + p.b.first + which * p.b.stride;
    double* const to = c.data() + p.c.first + which * p.c.stride;
    for (std::size_t i = 0; i < p.m; ++i) {
      for (std::size_t j = 0; j < p.n; ++j) {
        double sum = 0;
        for (std::size_t k = 0; k < p.k; ++k) {
          sum += left[p.transpose_a ? k * p.a.row + i : i * p.a.row + k] *
                 right[p.transpose_b ? j * p.b.row + k : k * p.b.row + j];
        }
        double& element = to[i * p.c.row + j];
        element = double{p.alpha} * sum + (p.beta == 0 ? 0 : double{p.beta} * element);
      }
    }
  }
}

void check_product(const Product& p, std::size_t size) {
  const Numbers a = random_numbers(size, 1);
  const Numbers b = random_numbers(size, 2);
  Numbers wanted = random_numbers(size, 3);
  Numbers given = wanted;
  expected(p, a, b, wanted);
  const neural::ColumnMajorGemm g = transformer::column_major(p);
  for (std::size_t i = 0; i < p.count; ++i) {
    library(g, double{p.alpha}, b.data() + p.b.first + i * p.b.stride, a.data() + p.a.first + i * p.a.stride,
            double{p.beta}, given.data() + p.c.first + i * p.c.stride);
  }
  CHECK(given == wanted);
}

}  // namespace

TEST_CASE("whole matrices, transposed or not, over what was there or added to it") {
  for (const bool transpose_a : {false, true}) {
    for (const bool transpose_b : {false, true}) {
      for (const float beta : {0.F, 1.F}) {
        check_product(transformer::whole(transpose_a, transpose_b, 3, 5, 4, beta), 20);
        check_product(transformer::whole(transpose_a, transpose_b, 5, 1, 2, beta), 20);
      }
    }
  }
}

TEST_CASE("each product of an attention, of each sequence") {
  const transformer::Settings s{.layers = 1, .width = 12, .heads = 3, .sequence = 5, .batch = 2};
  const std::size_t size = std::max(s.rows() * 3 * s.width, s.scores());
  for (std::size_t sequence = 0; sequence < s.batch; ++sequence) {
    const transformer::AttentionProducts products(s, sequence);
    for (const Product& p : {products.scores(), products.context(), products.scores_back(), products.values_back(),
                             products.queries_back(), products.keys_back()}) {
      CHECK(p.count == 3);
      check_product(p, size);
    }
  }
}

TEST_CASE("what 32 bits do not count is refused") {
  constexpr std::size_t large = std::size_t{1} << 31U;
  CHECK_THROWS_AS((void)transformer::column_major(transformer::whole(false, false, large, 1, 1)), std::length_error);
  Product p = transformer::whole(false, false, 2, 2, 2);
  p.c.row = large;
  CHECK_THROWS_AS((void)transformer::column_major(p), std::length_error);
}

TEST_CASE("16-bit numbers are the nearest ones") {
  using transformer::Bfloat16;
  CHECK(Bfloat16::nearest(1).bits == 0x3f80);
  CHECK(Bfloat16::nearest(-2.5F).value() == -2.5F);
  CHECK(Bfloat16::nearest(1.00390625F).bits == 0x3f80);  // half way: to the even one, below
  CHECK(Bfloat16::nearest(1.01171875F).bits == 0x3f82);  // half way: to the even one, above
  CHECK(Bfloat16::nearest(1.003907F).bits == 0x3f81);    // a little more than half
  CHECK(Bfloat16::nearest(3.4e38F).value() == std::numeric_limits<float>::infinity());
  CHECK(std::isnan(Bfloat16::nearest(std::numeric_limits<float>::quiet_NaN()).value()));
}
