// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace neural {

/// Losses are counted in these units, so that sums are exact in any order.
inline constexpr double loss_unit = 1.0 / 16777216;

/// c = a * b: m x n numbers from m x k and k x n. Matrices lie row by row, without gaps; a transposed one lies as the
/// k x m, or n x k, numbers that it is the transpose of.
struct Gemm {
  bool transpose_a = false;
  bool transpose_b = false;
  std::size_t m = 1;
  std::size_t n = 1;
  std::size_t k = 1;
};

/// Square images as [image][row][column][channel].
struct Images {
  std::size_t count = 1;
  std::size_t side = 1;
  std::size_t channels = 1;
  [[nodiscard]] std::size_t size() const { return count * side * side * channels; }
};

/// From `in` to `out` channels, each pixel from its size x size neighbourhood, 0 outside the image. The weights are a
/// matrix of columns() x out. On images of one pixel, of size 1, this is a dense layer.
struct Convolution {
  std::size_t images = 1;
  std::size_t side = 1;
  std::size_t in = 1;
  std::size_t out = 1;
  std::size_t size = 1;  ///< 1 or 3

  [[nodiscard]] std::size_t pixels() const { return images * side * side; }
  [[nodiscard]] std::size_t columns() const { return size * size * in; }
  [[nodiscard]] std::size_t weights() const { return columns() * out; }
};

/// From the input to the output, or the way back to the gradient of the weights or of the input.
enum class ConvolutionPass : std::uint8_t { forward, weights, input };

}  // namespace neural
