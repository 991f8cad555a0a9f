// SPDX-License-Identifier: Apache-2.0
#pragma once

// Convolutions as matrix products, for whatever queues the single steps. `Math` is a backend's part of the work:
// OpenclMath (opencl_math.hpp) documents what it has to offer. Nothing here knows an API, or swapmm.
//
// A Math may have, beside that:
//
//     static constexpr std::size_t columns_in_cache;  // bytes that a chunk of columns may take; 2 MiB if it is not
//     there
//
//     // A library's own convolutions, on weights that lie as out x columns(). The bytes of work area for one pass of a
//     // shape, always the same; none: the library does not do it, and matrix products will.
//     std::optional<std::size_t> convolution_work(ConvolutionPass pass, const Convolution& c);
//     void convolution(queue, c, x, weights, y, area);          // without bias
//     void convolution_weights(queue, c, x, y_gradient, weights_gradient, area);
//     void convolution_input(queue, c, y_gradient, weights, x_gradient, area);

#include <algorithm>
#include <cstddef>
#include <optional>

#include "neural/shapes.hpp"

namespace neural {

/// Where numbers begin on the device, and what work is queued on.
template <class Math>
using PlaceOf = typename Math::Place;
template <class Math>
using QueueOf = typename Math::Queue;

/// Bytes beside the tensors that a pass of a convolution needs: three areas, one behind the other, the library's first,
/// for libraries want that where a memory begins.
struct WorkArea {
  std::size_t gemm = 0;     ///< the matrix product's, or the convolution's where that is a library's own
  std::size_t columns = 0;  ///< of a chunk of images, see im2col; or the weights' gradient as the library gives it
  std::size_t rest = 0;     ///< sums to be added up, or weights transposed
  [[nodiscard]] std::size_t bytes() const { return gemm + columns + rest; }

  [[nodiscard]] static std::size_t rounded(std::size_t bytes) { return (bytes + 255) / 256 * 256; }
};

/// A Math with a library's own convolutions.
template <class Math>
concept HasConvolutions = requires(Math& math, const Convolution& c) {
  math.convolution_work(ConvolutionPass::forward, c);
};

template <class Math>
[[nodiscard]] constexpr std::size_t columns_in_cache() {
  if constexpr (requires { Math::columns_in_cache; }) return Math::columns_in_cache;
  return std::size_t{2} << 20U;
}

/// Images per chunk, a divisor of their number: the columns of a chunk are to stay in a cache.
template <class Math>
[[nodiscard]] std::size_t chunk_images(const Convolution& c) {
  if (c.size == 1) return c.images;
  std::size_t chunk =
      std::clamp(columns_in_cache<Math>() / (c.side * c.side * c.columns() * sizeof(float)), std::size_t{1}, c.images);
  while (c.images % chunk != 0) --chunk;
  return chunk;
}

namespace detail {

inline constexpr std::size_t pixels_per_sum = 128;

[[nodiscard]] inline std::size_t sums(const Convolution& c) {
  return (c.pixels() + pixels_per_sum - 1) / pixels_per_sum;
}
[[nodiscard]] inline std::size_t sums_bytes(const Convolution& c) {
  return WorkArea::rounded(sums(c) * c.out * sizeof(float));
}
[[nodiscard]] inline std::size_t weights_bytes(const Convolution& c) {
  return WorkArea::rounded(c.weights() * sizeof(float));
}
template <class Math>
[[nodiscard]] std::size_t chunk_pixels(const Convolution& c) {
  return chunk_images<Math>(c) * c.side * c.side;
}
template <class Math>
[[nodiscard]] std::size_t column_bytes(const Convolution& c) {
  return c.size == 1 ? 0 : WorkArea::rounded(chunk_pixels<Math>(c) * c.columns() * sizeof(float));
}
template <class Math>
[[nodiscard]] Gemm forward_gemm(const Convolution& c) {
  return {.m = chunk_pixels<Math>(c), .n = c.out, .k = c.columns()};
}
template <class Math>
[[nodiscard]] Gemm input_gemm(const Convolution& c) {
  return {.m = chunk_pixels<Math>(c), .n = c.columns(), .k = c.out};  // by the weights transposed
}
template <class Math>
[[nodiscard]] Gemm weights_gemm(const Convolution& c) {
  return {.transpose_a = true, .m = c.columns(), .n = c.out, .k = chunk_pixels<Math>(c)};
}

/// None: matrix products do it.
template <class Math>
[[nodiscard]] std::optional<std::size_t> library_work([[maybe_unused]] Math& math,
                                                      [[maybe_unused]] ConvolutionPass pass,
                                                      [[maybe_unused]] const Convolution& c) {
  if constexpr (HasConvolutions<Math>) return math.convolution_work(pass, c);
  return std::nullopt;
}

}  // namespace detail

template <class Math>
[[nodiscard]] WorkArea forward_work(Math& math, const Convolution& c) {
  if (const auto bytes = detail::library_work(math, ConvolutionPass::forward, c)) {
    return {WorkArea::rounded(*bytes), 0, detail::weights_bytes(c)};
  }
  return {WorkArea::rounded(math.gemm_work(detail::forward_gemm<Math>(c))), detail::column_bytes<Math>(c), 0};
}
template <class Math>
[[nodiscard]] WorkArea weights_work(Math& math, const Convolution& c) {
  if (const auto bytes = detail::library_work(math, ConvolutionPass::weights, c)) {
    return {WorkArea::rounded(*bytes), detail::weights_bytes(c),
            std::max(detail::weights_bytes(c), detail::sums_bytes(c))};
  }
  return {WorkArea::rounded(math.gemm_work(detail::weights_gemm<Math>(c))), detail::column_bytes<Math>(c),
          detail::sums_bytes(c)};
}
template <class Math>
[[nodiscard]] WorkArea input_work(Math& math, const Convolution& c) {
  if (const auto bytes = detail::library_work(math, ConvolutionPass::input, c)) {
    return {WorkArea::rounded(*bytes), 0, detail::weights_bytes(c)};
  }
  return {WorkArea::rounded(math.gemm_work(detail::input_gemm<Math>(c))), detail::column_bytes<Math>(c),
          detail::weights_bytes(c)};
}

/// y = x * weights + bias, and where `relu` says so what is below 0 becomes 0.
template <class Math>
void convolve(Math& math, QueueOf<Math>& queue, const Convolution& c, bool relu, PlaceOf<Math> x, PlaceOf<Math> weights,
              PlaceOf<Math> bias, PlaceOf<Math> y, const WorkArea& work, PlaceOf<Math> area) {
  if constexpr (HasConvolutions<Math>) {
    if (math.convolution_work(ConvolutionPass::forward, c)) {
      const PlaceOf<Math> transposed = area.at((work.gemm + work.columns) / sizeof(float));
      math.transpose(queue, c.columns(), c.out, weights, transposed);
      math.convolution(queue, c, x, transposed, y, area);
      math.bias_relu(queue, c.pixels(), c.out, relu, y, bias);
      return;
    }
  }
  const Gemm product = detail::forward_gemm<Math>(c);
  const std::size_t chunk = chunk_images<Math>(c);
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

namespace detail {

/// `gradient` and `rest`: weights_bytes() each.
template <class Math>
void weights_by_library(Math& math, QueueOf<Math>& queue, const Convolution& c, bool keep, PlaceOf<Math> x,
                        PlaceOf<Math> y_gradient, PlaceOf<Math> weights_gradient, PlaceOf<Math> gradient,
                        PlaceOf<Math> rest, PlaceOf<Math> area) {
  math.convolution_weights(queue, c, x, y_gradient, gradient, area);
  math.transpose(queue, c.out, c.columns(), gradient, keep ? rest : weights_gradient);
  if (keep) math.add_parts(queue, c.weights(), 1, rest, true, weights_gradient);
}

template <class Math>
void weights_by_products(Math& math, QueueOf<Math>& queue, const Convolution& c, bool keep, PlaceOf<Math> x,
                         PlaceOf<Math> y_gradient, PlaceOf<Math> weights_gradient, PlaceOf<Math> columns,
                         PlaceOf<Math> area) {
  const Gemm product = weights_gemm<Math>(c);
  const std::size_t chunk = chunk_images<Math>(c);
  for (std::size_t first = 0; first < c.images; first += chunk) {
    PlaceOf<Math> rows = x.at(first * c.side * c.side * c.in);
    if (c.size != 1) {
      math.im2col(queue, {chunk, c.side, c.in}, rows, columns);
      rows = columns;
    }
    math.gemm(queue, product, rows, y_gradient.at(first * c.side * c.side * c.out), keep || first > 0 ? 1 : 0,
              weights_gradient, area);
  }
}

}  // namespace detail

/// The gradients of weights and bias, from the input x and the gradient of the output. With `keep` they are added to
/// what is there.
template <class Math>
void convolve_weights_backward(Math& math, QueueOf<Math>& queue, const Convolution& c, bool keep, PlaceOf<Math> x,
                               PlaceOf<Math> y_gradient, PlaceOf<Math> weights_gradient, PlaceOf<Math> bias_gradient,
                               const WorkArea& work, PlaceOf<Math> area) {
  const PlaceOf<Math> columns = area.at(work.gemm / sizeof(float));
  const PlaceOf<Math> rest = area.at((work.gemm + work.columns) / sizeof(float));
  bool by_library = false;
  if constexpr (HasConvolutions<Math>) {
    by_library = math.convolution_work(ConvolutionPass::weights, c).has_value();
    if (by_library) {
      detail::weights_by_library(math, queue, c, keep, x, y_gradient, weights_gradient, columns, rest, area);
    }
  }
  if (!by_library) {
    detail::weights_by_products(math, queue, c, keep, x, y_gradient, weights_gradient, columns, area);
  }
  math.column_sums(queue, c.pixels(), c.out, detail::pixels_per_sum, y_gradient, rest);
  math.add_parts(queue, c.out, detail::sums(c), rest, keep, bias_gradient);
}

/// The gradient of the input. Multiplies by the weights transposed beforehand: as fast, and one kernel less to compile.
template <class Math>
void convolve_input_backward(Math& math, QueueOf<Math>& queue, const Convolution& c, PlaceOf<Math> y_gradient,
                             PlaceOf<Math> weights, PlaceOf<Math> x_gradient, const WorkArea& work,
                             PlaceOf<Math> area) {
  const PlaceOf<Math> columns = area.at(work.gemm / sizeof(float));
  const PlaceOf<Math> transposed = area.at((work.gemm + work.columns) / sizeof(float));
  math.transpose(queue, c.columns(), c.out, weights, transposed);
  if constexpr (HasConvolutions<Math>) {
    if (math.convolution_work(ConvolutionPass::input, c)) {
      math.convolution_input(queue, c, y_gradient, transposed, x_gradient, area);
      return;
    }
  }
  const Gemm product = detail::input_gemm<Math>(c);
  const std::size_t chunk = chunk_images<Math>(c);
  for (std::size_t first = 0; first < c.images; first += chunk) {
    const PlaceOf<Math> to = x_gradient.at(first * c.side * c.side * c.in);
    math.gemm(queue, product, y_gradient.at(first * c.side * c.side * c.out), transposed, 0, c.size == 1 ? to : columns,
              area);
    if (c.size != 1) math.col2im(queue, {chunk, c.side, c.in}, columns, to);
  }
}

}  // namespace neural
