// SPDX-License-Identifier: Apache-2.0
// What cuBLAS is told about matrices that lie row by row, against a product written as its manual says: all that it
// knows is columns.
#include "neural/cuda_gemm.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <stdexcept>
#include <vector>

namespace {

using neural::ColumnMajorGemm;
using neural::Gemm;

std::size_t at(int row, int column, int stride) {
  return static_cast<std::size_t>(column) * static_cast<std::size_t>(stride) + static_cast<std::size_t>(row);
}

// As cublasSgemm() with these arguments.
std::vector<double> multiply(const ColumnMajorGemm& g, const std::vector<double>& left,
                             const std::vector<double>& right, std::size_t size) {
  REQUIRE(g.left_stride >= (g.transpose_left ? g.depth : g.rows));
  REQUIRE(g.right_stride >= (g.transpose_right ? g.columns : g.depth));
  REQUIRE(g.result_stride >= g.rows);
  std::vector<double> result(size);
  for (int column = 0; column < g.columns; ++column) {
    for (int row = 0; row < g.rows; ++row) {
      double& sum = result.at(at(row, column, g.result_stride));
      for (int i = 0; i < g.depth; ++i) {
        sum += left.at(g.transpose_left ? at(i, row, g.left_stride) : at(row, i, g.left_stride)) *
               right.at(g.transpose_right ? at(column, i, g.right_stride) : at(i, column, g.right_stride));
      }
    }
  }
  return result;
}

std::vector<double> numbers(std::size_t count, std::size_t seed) {
  std::vector<double> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<double>((i * 7 + seed) % 23) - 11;
  return values;
}

}  // namespace

TEST_CASE("products of matrices row by row are those that the library computes column by column") {
  for (const Gemm& shape : {Gemm{.m = 1, .n = 1, .k = 1}, Gemm{.m = 2, .n = 3, .k = 5}, Gemm{.m = 7, .n = 4, .k = 1},
                            Gemm{.m = 1, .n = 6, .k = 9}, Gemm{.m = 8, .n = 1, .k = 3}}) {
    for (int ways = 0; ways < 4; ++ways) {
      Gemm g = shape;
      g.transpose_a = (ways & 1) != 0;
      g.transpose_b = (ways & 2) != 0;
      CAPTURE(g.m);
      CAPTURE(ways);
      const std::vector<double> a = numbers(g.m * g.k, 1);
      const std::vector<double> b = numbers(g.k * g.n, 2);
      std::vector<double> exact(g.m * g.n);
      for (std::size_t i = 0; i < g.m; ++i) {
        for (std::size_t j = 0; j < g.n; ++j) {
          for (std::size_t l = 0; l < g.k; ++l) {
            exact[i * g.n + j] +=
                a[g.transpose_a ? l * g.m + i : i * g.k + l] * b[g.transpose_b ? j * g.k + l : l * g.n + j];
          }
        }
      }
      CHECK(multiply(neural::column_major(g), b, a, exact.size()) == exact);
    }
  }
}

TEST_CASE("the arguments of a product, one by one") {
  const ColumnMajorGemm g = neural::column_major({.transpose_a = true, .m = 2, .n = 3, .k = 5});
  CHECK(!g.transpose_left);
  CHECK(g.transpose_right);
  CHECK(g.rows == 3);
  CHECK(g.columns == 2);
  CHECK(g.depth == 5);
  CHECK(g.left_stride == 3);
  CHECK(g.right_stride == 2);
  CHECK(g.result_stride == 3);
  CHECK(neural::column_major({.transpose_b = true, .m = 2, .n = 3, .k = 5}).left_stride == 5);
  CHECK(neural::column_major({.m = 2, .n = 3, .k = 5}).right_stride == 5);
}

TEST_CASE("products that the library cannot count are refused") {
  const std::size_t most = 2147483647;
  CHECK(neural::column_major({.m = most, .n = 1, .k = 1}).columns == 2147483647);
  CHECK_THROWS_AS((void)neural::column_major({.m = most + 1, .n = 1, .k = 1}), std::length_error);
  CHECK_THROWS_AS((void)neural::column_major({.m = 1, .n = most + 1, .k = 1}), std::length_error);
  CHECK_THROWS_AS((void)neural::column_major({.m = 1, .n = 1, .k = most + 1}), std::length_error);
}

TEST_CASE("work areas of products: a quarter of the matrices, between 16 KiB and what is recommended") {
  constexpr std::size_t mib = std::size_t{1} << 20U;
  CHECK(neural::gemm_work_bytes({.m = 1, .n = 1, .k = 1}, 4 * mib) == 16384);
  CHECK(neural::gemm_work_bytes({.m = 1024, .n = 1024, .k = 1024}, 32 * mib) == 3 * mib);
  CHECK(neural::gemm_work_bytes({.m = 1024, .n = 1024, .k = 1024}, 2 * mib) == 2 * mib);
  CHECK(neural::gemm_work_bytes({.m = 8192, .n = 8192, .k = 8192}, 32 * mib) == 32 * mib);
  CHECK(neural::gemm_work_bytes({.m = 1000, .n = 100, .k = 33}, 4 * mib) % 256 == 0);
}
