// SPDX-License-Identifier: Apache-2.0
#pragma once

// Convolutions as matrix products, for whatever queues the single steps. `Math` is a backend's part of the work:
// OpenclMath (opencl_math.hpp) documents what it has to offer. Nothing here knows an API, or swapmm.

#include <algorithm>
#include <cstddef>

#include "neural/shapes.hpp"

namespace neural {

/// Where numbers begin on the device, and what work is queued on.
template <class Math>
using PlaceOf = typename Math::Place;
template <class Math>
using QueueOf = typename Math::Queue;

/// Bytes beside the tensors that a pass of a convolution needs: three areas, one behind the other, the matrix product's
/// first, for libraries want that where a memory begins.
struct WorkArea {
  std::size_t gemm = 0;
  std::size_t columns = 0;  ///< of a chunk of images, see im2col
  std::size_t rest = 0;     ///< sums to be added up, or weights transposed
  [[nodiscard]] std::size_t bytes() const { return gemm + columns + rest; }

  [[nodiscard]] static std::size_t rounded(std::size_t bytes) { return (bytes + 255) / 256 * 256; }
};

/// Images per chunk, a divisor of their number: the columns of a chunk are to stay in a cache.
[[nodiscard]] inline std::size_t chunk_images(const Convolution& c) {
  if (c.size == 1) return c.images;
  constexpr std::size_t columns_bytes = std::size_t{2} << 20U;
  std::size_t chunk =
      std::clamp(columns_bytes / (c.side * c.side * c.columns() * sizeof(float)), std::size_t{1}, c.images);
  while (c.images % chunk != 0) --chunk;
  return chunk;
}

namespace detail {

inline constexpr std::size_t pixels_per_sum = 128;

[[nodiscard]] inline std::size_t chunk_pixels(const Convolution& c) { return chunk_images(c) * c.side * c.side; }
[[nodiscard]] inline std::size_t sums(const Convolution& c) {
  return (c.pixels() + pixels_per_sum - 1) / pixels_per_sum;
}
[[nodiscard]] inline std::size_t column_bytes(const Convolution& c) {
  return c.size == 1 ? 0 : WorkArea::rounded(chunk_pixels(c) * c.columns() * sizeof(float));
}
[[nodiscard]] inline Gemm forward_gemm(const Convolution& c) {
  return {.m = chunk_pixels(c), .n = c.out, .k = c.columns()};
}
[[nodiscard]] inline Gemm input_gemm(const Convolution& c) {
  return {.m = chunk_pixels(c), .n = c.columns(), .k = c.out};  // by the weights transposed
}
[[nodiscard]] inline Gemm weights_gemm(const Convolution& c) {
  return {.transpose_a = true, .m = c.columns(), .n = c.out, .k = chunk_pixels(c)};
}

}  // namespace detail

template <class Math>
[[nodiscard]] WorkArea forward_work(Math& math, const Convolution& c) {
  return {WorkArea::rounded(math.gemm_work(detail::forward_gemm(c))), detail::column_bytes(c), 0};
}
template <class Math>
[[nodiscard]] WorkArea weights_work(Math& math, const Convolution& c) {
  return {WorkArea::rounded(math.gemm_work(detail::weights_gemm(c))), detail::column_bytes(c),
          WorkArea::rounded(detail::sums(c) * c.out * sizeof(float))};
}
template <class Math>
[[nodiscard]] WorkArea input_work(Math& math, const Convolution& c) {
  return {WorkArea::rounded(math.gemm_work(detail::input_gemm(c))), detail::column_bytes(c),
          WorkArea::rounded(c.columns() * c.out * sizeof(float))};
}

/// y = x * weights + bias, and where `relu` says so what is below 0 becomes 0.
template <class Math>
void convolve(Math& math, QueueOf<Math>& queue, const Convolution& c, bool relu, PlaceOf<Math> x, PlaceOf<Math> weights,
              PlaceOf<Math> bias, PlaceOf<Math> y, const WorkArea& work, PlaceOf<Math> area) {
  const Gemm product = detail::forward_gemm(c);
  const std::size_t chunk = chunk_images(c);
  for (std::size_t first = 0; first < c.images; first += chunk) {
    PlaceOf<Math> rows = x.at(first * c.side * c.side * c.in);
    if (c.size != 1) {
      const PlaceOf<Math> columns = area.at(work.gemm / sizeof(float));
      math.im2col(queue, {chunk, c.side, c.in}, rows, columns);
      rows = columns;
    }
    math.gemm(queue, product, rows, weights, 0, y.at(first * c.side * c.side * c.out), area);
  }
  math.bias_relu(queue, c.pixels(), c.out, relu, y, bias);
}

/// The gradients of weights and bias, from the input x and the gradient of the output. With `keep` they are added to
/// what is there.
template <class Math>
void convolve_weights_backward(Math& math, QueueOf<Math>& queue, const Convolution& c, bool keep, PlaceOf<Math> x,
                               PlaceOf<Math> y_gradient, PlaceOf<Math> weights_gradient, PlaceOf<Math> bias_gradient,
                               const WorkArea& work, PlaceOf<Math> area) {
  const Gemm product = detail::weights_gemm(c);
  const std::size_t chunk = chunk_images(c);
  const PlaceOf<Math> columns = area.at(work.gemm / sizeof(float));
  const PlaceOf<Math> sums = area.at((work.gemm + work.columns) / sizeof(float));
  for (std::size_t first = 0; first < c.images; first += chunk) {
    PlaceOf<Math> rows = x.at(first * c.side * c.side * c.in);
    if (c.size != 1) {
      math.im2col(queue, {chunk, c.side, c.in}, rows, columns);
      rows = columns;
    }
    math.gemm(queue, product, rows, y_gradient.at(first * c.side * c.side * c.out), keep || first > 0 ? 1 : 0,
              weights_gradient, area);
  }
  math.column_sums(queue, c.pixels(), c.out, detail::pixels_per_sum, y_gradient, sums);
  math.add_parts(queue, c.out, detail::sums(c), sums, keep, bias_gradient);
}

/// The gradient of the input. Multiplies by the weights transposed beforehand: as fast, and one kernel less to compile.
template <class Math>
void convolve_input_backward(Math& math, QueueOf<Math>& queue, const Convolution& c, PlaceOf<Math> y_gradient,
                             PlaceOf<Math> weights, PlaceOf<Math> x_gradient, const WorkArea& work,
                             PlaceOf<Math> area) {
  const Gemm product = detail::input_gemm(c);
  const std::size_t chunk = chunk_images(c);
  const PlaceOf<Math> columns = area.at(work.gemm / sizeof(float));
  const PlaceOf<Math> transposed = area.at((work.gemm + work.columns) / sizeof(float));
  math.transpose(queue, c.columns(), c.out, weights, transposed);
  for (std::size_t first = 0; first < c.images; first += chunk) {
    const PlaceOf<Math> to = x_gradient.at(first * c.side * c.side * c.in);
    math.gemm(queue, product, y_gradient.at(first * c.side * c.side * c.out), transposed, 0, c.size == 1 ? to : columns,
              area);
    if (c.size != 1) math.col2im(queue, {chunk, c.side, c.in}, columns, to);
  }
}

}  // namespace neural
