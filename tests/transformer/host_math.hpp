// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a stack of transformer blocks computes, written down as plainly as possible: kernels of the simulated device.
// The CUDA class has the same functions, and its tests compare the two.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <optional>
#include <vector>

#include <swapmm/backend/testing/simulated.hpp>

#include "transformer/elements.h"
#include "transformer/shapes.hpp"

namespace swapmm::test {

template <class Number_>
class HostMath {
 public:
  using Backend = simulated::Backend;
  using Queue = Backend::Queue;
  using Number = Number_;
  using Sum = Number_;
  template <class T>
  using View = Backend::View<T>;
  using Numbers = View<Number>;

  struct Area {
    Area() = default;
    explicit Area(const View<std::byte>& bytes) : view(bytes) {}
    std::optional<View<std::byte>> view;
  };

  /// Bytes that this product needs as its work area; here to see whether it is handed on.
  [[nodiscard]] static std::size_t product_work(const transformer::Product& p) { return p.count == 1 ? 64 : 0; }
  void product(Queue& queue, const transformer::Product& p, Numbers a, Numbers b, Numbers c, const Area& area) {
    std::vector<simulated::Touch> touches{simulated::Touch::read(a), simulated::Touch::read(b),
                                          simulated::Touch::write(c)};
    if (p.beta != 0) touches.push_back(simulated::Touch::read(c));
    if (product_work(p) > 0) touches.push_back(simulated::Touch::write(area.view.value()));
    queue.launch("product", time_of(2 * p.count * p.m * p.n * p.k), touches, [p, a, b, c] {
      for (std::size_t i = 0; i < p.count; ++i) {
        multiply(p, a.data() + p.a.first + i * p.a.stride, b.data() + p.b.first + i * p.b.stride,
                 c.data() + p.c.first + i * p.c.stride);
      }
    });
  }

  /// Random numbers from middle - range to middle + range.
  void random(Queue& queue, std::size_t count, std::uint64_t seed, float range, float middle, Numbers x) {
    each(queue, count, {simulated::Touch::write(x)},
         [=](std::size_t i) { x[i] = static_cast<Number>(middle + range * transformer::random_number(seed, i)); });
  }
  /// A row of ones, and one of zeros.
  void norm_weights(Queue& queue, std::size_t width, Numbers weights) {
    each(queue, 2 * width, {simulated::Touch::write(weights)},
         [=](std::size_t i) { weights[i] = static_cast<Number>(i < width ? 1 : 0); });
  }
  void copy(Queue& queue, std::size_t count, Numbers from, Numbers to) {
    each(queue, count, {simulated::Touch::read(from), simulated::Touch::write(to)},
         [=](std::size_t i) { to[i] = from[i]; });
  }

  /// out = (x - mean) / deviation * scale + shift, row by row; `weights`: the row of scales, then that of shifts;
  /// `statistics`: for each row the mean, and 1 / deviation.
  void layer_norm(Queue& queue, std::size_t rows, std::size_t width, Numbers x, Numbers weights, Numbers out,
                  View<Sum> statistics) {
    each(queue, rows,
         {simulated::Touch::read(x), simulated::Touch::read(weights), simulated::Touch::write(out),
          simulated::Touch::write(statistics)},
         [=](std::size_t row) {
           const Number* const in = x.data() + row * width;
           Sum mean = 0;
           for (std::size_t i = 0; i < width; ++i) mean += in[i];
           mean /= static_cast<Sum>(width);
           Sum variance = 0;
           for (std::size_t i = 0; i < width; ++i) variance += (in[i] - mean) * (in[i] - mean);
           const Sum inverse = 1 / std::sqrt(variance / static_cast<Sum>(width) + Sum{transformer::epsilon});
           for (std::size_t i = 0; i < width; ++i) {
             out[row * width + i] = (in[i] - mean) * inverse * weights[i] + weights[width + i];
           }
           statistics[2 * row] = mean;
           statistics[2 * row + 1] = inverse;
         });
  }
  [[nodiscard]] static std::size_t norm_work(std::size_t, std::size_t width) { return width * sizeof(Sum); }
  /// Adds the gradient of x to `x_gradient`.
  void layer_norm_backward(Queue& queue, std::size_t rows, std::size_t width, Numbers x, View<Sum> statistics,
                           Numbers weights, Numbers out_gradient, Numbers x_gradient, Numbers weights_gradient,
                           const Area& area) {
    using simulated::Touch;
    const Touch touches[] = {Touch::read(x),           Touch::read(statistics),       Touch::read(weights),
                             Touch::read(x_gradient),  Touch::read(out_gradient),     Touch::write(x_gradient),
                             Touch::write(*area.view), Touch::write(weights_gradient)};
    queue.launch("layer_norm_backward", time_of(rows * width), touches, [=] {
      for (std::size_t i = 0; i < 2 * width; ++i) weights_gradient[i] = 0;
      for (std::size_t row = 0; row < rows; ++row) {
        const Sum mean = statistics[2 * row];
        const Sum inverse = statistics[2 * row + 1];
        const Number* const in = x.data() + row * width;
        const Number* const g = out_gradient.data() + row * width;
        Sum sum = 0;
        Sum product = 0;
        for (std::size_t i = 0; i < width; ++i) {
          const Sum normal = (in[i] - mean) * inverse;
          sum += g[i] * weights[i];
          product += g[i] * weights[i] * normal;
          weights_gradient[i] += g[i] * normal;
          weights_gradient[width + i] += g[i];
        }
        sum /= static_cast<Sum>(width);
        product /= static_cast<Sum>(width);
        for (std::size_t i = 0; i < width; ++i) {
          const Sum normal = (in[i] - mean) * inverse;
          x_gradient[row * width + i] += inverse * (g[i] * weights[i] - sum - normal * product);
        }
      }
    });
  }

  /// Each row, in place.
  void softmax(Queue& queue, std::size_t rows, std::size_t columns, Numbers x) {
    each(queue, rows, {simulated::Touch::read(x), simulated::Touch::write(x)}, [=](std::size_t row) {
      Number* const of = x.data() + row * columns;
      Number most = of[0];
      for (std::size_t i = 1; i < columns; ++i) most = std::max(most, of[i]);
      Sum sum = 0;
      for (std::size_t i = 0; i < columns; ++i) sum += of[i] = std::exp(of[i] - most);
      for (std::size_t i = 0; i < columns; ++i) of[i] /= sum;
    });
  }
  /// The gradient of the probabilities becomes the one of what they were made from.
  void softmax_backward(Queue& queue, std::size_t rows, std::size_t columns, Numbers probabilities, Numbers gradient) {
    each(queue, rows,
         {simulated::Touch::read(probabilities), simulated::Touch::read(gradient), simulated::Touch::write(gradient)},
         [=](std::size_t row) {
           const Number* const p = probabilities.data() + row * columns;
           Number* const g = gradient.data() + row * columns;
           Sum sum = 0;
           for (std::size_t i = 0; i < columns; ++i) sum += p[i] * g[i];
           for (std::size_t i = 0; i < columns; ++i) g[i] = p[i] * (g[i] - sum);
         });
  }

  void gelu(Queue& queue, std::size_t count, Numbers x, Numbers y) {
    each(queue, count, {simulated::Touch::read(x), simulated::Touch::write(y)},
         [=](std::size_t i) { y[i] = transformer::gelu(x[i]); });
  }
  /// The gradient of y becomes the one of x.
  void gelu_backward(Queue& queue, std::size_t count, Numbers x, Numbers gradient) {
    each(queue, count, {simulated::Touch::read(x), simulated::Touch::read(gradient), simulated::Touch::write(gradient)},
         [=](std::size_t i) { gradient[i] *= transformer::gelu_slope(x[i]); });
  }

  [[nodiscard]] static std::size_t mean_square_work(std::size_t) { return 0; }
  /// The mean of the squares of x, and its gradient.
  void mean_square(Queue& queue, std::size_t count, Numbers x, Numbers gradient, View<double> loss, const Area&) {
    const simulated::Touch touches[] = {simulated::Touch::read(x), simulated::Touch::write(gradient),
                                        simulated::Touch::write(loss)};
    queue.launch("mean_square", time_of(count), touches, [=] {
      double sum = 0;
      for (std::size_t i = 0; i < count; ++i) {
        sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
        gradient[i] = 2 * x[i] / static_cast<Number>(count);
      }
      loss[0] = sum / static_cast<double>(count);
    });
  }

  /// value -= rate * gradient
  void learn(Queue& queue, std::size_t count, float rate, Numbers value, Numbers gradient) {
    each(queue, count,
         {simulated::Touch::read(gradient), simulated::Touch::read(value), simulated::Touch::write(value)},
         [=](std::size_t i) { value[i] -= rate * gradient[i]; });
  }

  /// Adds digest_share() of all elements' bits, modulo 2^64.
  void digest(Queue& queue, std::size_t count, std::uint64_t salt, Numbers x, View<std::uint64_t> digest) {
    each(queue, count, {simulated::Touch::read(x), simulated::Touch::read(digest), simulated::Touch::write(digest)},
         [=](std::size_t i) {
           std::uint64_t bits = 0;
           std::memcpy(&bits, &x[i], sizeof(Number));
           digest[0] += transformer::digest_share(salt, i, bits);
         });
  }

 private:
  // Arithmetic at one operation, and everything else at one element, per nanosecond.
  [[nodiscard]] static std::chrono::nanoseconds time_of(std::size_t count) {
    return std::chrono::nanoseconds(static_cast<std::int64_t>(count));
  }

  template <class Body>
  static void each(Queue& queue, std::size_t count, std::initializer_list<simulated::Touch> touches, Body body) {
    queue.launch("kernel", time_of(count), touches, [count, body] {
      for (std::size_t i = 0; i < count; ++i) body(i);
    });
  }

  static void multiply(const transformer::Product& p, const Number* a, const Number* b, Number* c) {
    for (std::size_t i = 0; i < p.m; ++i) {
      for (std::size_t j = 0; j < p.n; ++j) {
        Sum sum = 0;
        for (std::size_t k = 0; k < p.k; ++k) {
          sum += a[p.transpose_a ? k * p.a.row + i : i * p.a.row + k] *
                 b[p.transpose_b ? j * p.b.row + k : k * p.b.row + j];
        }
        Number& to = c[i * p.c.row + j];
        to = Number{p.alpha} * sum + (p.beta == 0 ? Number{0} : Number{p.beta} * to);
      }
    }
  }
};

}  // namespace swapmm::test
