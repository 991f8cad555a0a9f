// SPDX-License-Identifier: Apache-2.0
// Each step against the same on the host: memories that begin anywhere, sizes that fill no group of work items.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "neural/device.hpp"
#include "neural/shapes.hpp"

namespace {

using namespace swapmm::test;
using neural::Images;
using Floats = Memory<float>;
using Longs = Memory<std::int64_t>;
using Bytes = Memory<std::uint8_t>;

// A pixel's place; false outside of the image.
bool inside(const Images& s, std::ptrdiff_t row, std::ptrdiff_t column) {
  const auto side = static_cast<std::ptrdiff_t>(s.side);
  return row >= 0 && row < side && column >= 0 && column < side;
}
std::size_t at(const Images& s, std::size_t image, std::size_t row, std::size_t column, std::size_t channel) {
  return ((image * s.side + row) * s.side + column) * s.channels + channel;
}

// Calls visit(place in the columns, place in x), with no place in x for the border.
template <class Visit>
void for_each_column(const Images& s, Visit visit) {
  std::size_t to = 0;
  for (std::size_t image = 0; image < s.count; ++image) {
    for (std::size_t row = 0; row < s.side; ++row) {
      for (std::size_t column = 0; column < s.side; ++column) {
        for (int dy = -1; dy <= 1; ++dy) {
          for (int dx = -1; dx <= 1; ++dx) {
            const auto y = static_cast<std::ptrdiff_t>(row) + dy;
            const auto x = static_cast<std::ptrdiff_t>(column) + dx;
            for (std::size_t c = 0; c < s.channels; ++c) {
              visit(to++, inside(s, y, x) ? static_cast<std::ptrdiff_t>(at(s, image, static_cast<std::size_t>(y),
                                                                           static_cast<std::size_t>(x), c))
                                          : -1);
            }
          }
        }
      }
    }
  }
}

const std::vector<Images> shapes{{1, 1, 1}, {2, 28, 1}, {3, 5, 3}, {2, 14, 32}, {1, 7, 100}, {5, 2, 17}};

}  // namespace

TEST_CASE("a matrix product is right for each way in which its matrices can lie, and adds where it is told to") {
  for (const neural::Gemm shape : {neural::Gemm{.m = 1, .n = 1, .k = 1}, neural::Gemm{.m = 33, .n = 10, .k = 65},
                                   neural::Gemm{.m = 128, .n = 32, .k = 9}, neural::Gemm{.m = 7, .n = 130, .k = 31}}) {
    for (int ways = 0; ways < 4; ++ways) {
      neural::Gemm g = shape;
      g.transpose_a = (ways & 1) != 0;
      g.transpose_b = (ways & 2) != 0;
      CAPTURE(g.m);
      CAPTURE(ways);
      const std::vector<float> a = numbers(g.m * g.k, 1);
      const std::vector<float> b = numbers(g.k * g.n, 2);
      std::vector<float> exact(g.m * g.n);
      for (std::size_t i = 0; i < g.m; ++i) {
        for (std::size_t j = 0; j < g.n; ++j) {
          for (std::size_t l = 0; l < g.k; ++l) {
            exact[i * g.n + j] +=
                a[g.transpose_a ? l * g.m + i : i * g.k + l] * b[g.transpose_b ? j * g.k + l : l * g.n + j];
          }
        }
      }
      const Floats on_a(a);
      const Floats on_b(b);
      const Floats c(g.m * g.n);  // no numbers at first
      const std::size_t work = math().gemm_work(g);
      const DeviceBytes area(std::max(work, std::size_t{1}));
      const Math::Place place = work == 0 ? Math::Place() : area.place();
      math().gemm(queue(), g, on_a.place(), on_b.place(), 0, c.place(), place);
      CHECK(c.values() == exact);
      math().gemm(queue(), g, on_a.place(), on_b.place(), 1, c.place(), place);
      for (float& value : exact) value *= 2;
      CHECK(c.values() == exact);
    }
  }
}

TEST_CASE("transpose, fill") {
  for (const auto& [rows, columns] : {std::pair<std::size_t, std::size_t>{1, 1}, {9, 32}, {300, 7}, {65, 129}}) {
    const std::vector<float> from = numbers(rows * columns, 3);
    const Floats on_from(from);
    const Floats to(rows * columns);
    math().transpose(queue(), rows, columns, on_from.place(), to.place());
    std::vector<float> exact(from.size());
    for (std::size_t i = 0; i < from.size(); ++i) exact[i % columns * rows + i / columns] = from[i];
    CHECK(to.values() == exact);
    math().fill(queue(), rows * columns - 1, to.place(), 1.5F);
    std::fill(exact.begin(), exact.end() - 1, 1.5F);
    CHECK(to.values() == exact);
  }
}

TEST_CASE("bias and ReLU, and the way back") {
  for (const auto& [pixels, channels] :
       {std::pair<std::size_t, std::size_t>{1, 1}, {784, 32}, {33, 10}, {5, 100}, {300, 3}}) {
    const std::vector<float> y = numbers(pixels * channels, 4);
    const std::vector<float> bias = numbers(channels, 5);
    std::vector<float> exact(y.size());
    for (std::size_t i = 0; i < y.size(); ++i) exact[i] = y[i] + bias[i % channels];
    const Floats on_bias(bias);
    const Floats linear(y);
    math().bias_relu(queue(), pixels, channels, false, linear.place(), on_bias.place());
    CHECK(linear.values() == exact);
    for (float& value : exact) value = value > 0 ? value : 0;
    const Floats relu(y);
    math().bias_relu(queue(), pixels, channels, true, relu.place(), on_bias.place());
    CHECK(relu.values() == exact);

    std::vector<float> gradient = numbers(y.size(), 6);
    const Floats on_gradient(gradient);
    math().relu_backward(queue(), y.size(), relu.place(), on_gradient.place());
    for (std::size_t i = 0; i < y.size(); ++i) gradient[i] = exact[i] > 0 ? gradient[i] : 0;
    CHECK(on_gradient.values() == gradient);
  }
}

TEST_CASE("sums of channels, in two steps, with a last block that is not full") {
  for (const auto& [pixels, channels, block] :
       {std::array<std::size_t, 3>{1, 1, 128}, {1000, 32, 128}, {256, 10, 128}, {129, 70, 64}}) {
    const std::vector<float> gradient = numbers(pixels * channels, 7);
    const std::size_t blocks = (pixels + block - 1) / block;
    std::vector<float> rows(blocks * channels);
    std::vector<float> exact(channels);
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      rows[i / channels / block * channels + i % channels] += gradient[i];
      exact[i % channels] += gradient[i];
    }
    const Floats on_gradient(gradient);
    const Floats sums(rows.size());
    math().column_sums(queue(), pixels, channels, block, on_gradient.place(), sums.place());
    CHECK(sums.values() == rows);
    const Floats total(channels);
    math().add_parts(queue(), channels, blocks, sums.place(), false, total.place());
    CHECK(total.values() == exact);
    math().add_parts(queue(), channels, blocks, sums.place(), true, total.place());
    for (float& value : exact) value *= 2;
    CHECK(total.values() == exact);
  }
}

TEST_CASE("the columns of 3 x 3, and each number's sum of the places it went to") {
  for (const Images& s : shapes) {
    CAPTURE(s.side);
    CAPTURE(s.channels);
    const std::vector<float> x = numbers(s.size(), 8);
    const std::vector<float> back = numbers(s.size() * 9, 9);
    std::vector<float> columns(x.size() * 9);
    std::vector<float> sums(x.size());
    for_each_column(s, [&](std::size_t to, std::ptrdiff_t from) {
      if (from < 0) return;
      columns[to] = x[static_cast<std::size_t>(from)];
      sums[static_cast<std::size_t>(from)] += back[to];
    });
    const Floats on_x(x);
    const Floats on_columns(columns.size());
    math().im2col(queue(), s, on_x.place(), on_columns.place());
    CHECK(on_columns.values() == columns);
    const Floats on_back(back);
    const Floats on_sums(sums.size());
    math().col2im(queue(), s, on_back.place(), on_sums.place());
    CHECK(on_sums.values() == sums);
  }
}

TEST_CASE("the largest of 2 x 2, of equal ones the first, and the way back to it") {
  for (const Images& s : shapes) {  // of what comes out
    CAPTURE(s.side);
    CAPTURE(s.channels);
    const Images before{s.count, s.side * 2, s.channels};
    std::vector<float> x = numbers(before.size(), 10);
    for (float& value : x) value = value > 0 ? value : 0;  // many are equal
    const std::vector<float> y_gradient = numbers(s.size(), 11);
    std::vector<float> y(s.size());
    std::vector<std::uint8_t> map(s.size());
    std::vector<float> x_gradient(x.size());
    for (std::size_t i = 0; i < y.size(); ++i) {
      const std::size_t c = i % s.channels;
      const std::size_t column = i / s.channels % s.side;
      const std::size_t row = i / s.channels / s.side % s.side;
      const std::size_t image = i / s.channels / s.side / s.side;
      const auto place = [&](std::size_t one) { return at(before, image, row * 2 + one / 2, column * 2 + one % 2, c); };
      for (std::uint8_t one = 1; one < 4; ++one) {
        if (x[place(one)] > x[place(map[i])]) map[i] = one;
      }
      y[i] = x[place(map[i])];
      if (y[i] > 0) x_gradient[place(map[i])] = y_gradient[i];
    }
    const Floats on_x(x);
    const Floats on_y(y.size());
    const Bytes on_map(y.size());
    math().max_pool(queue(), s, on_x.place(), on_y.place(), on_map.place());
    CHECK(on_y.values() == y);
    CHECK(on_map.values() == map);
    const Floats on_y_gradient(y_gradient);
    const Floats on_x_gradient(x.size());
    math().max_pool_backward(queue(), s, on_y.place(), on_map.place(), on_y_gradient.place(), on_x_gradient.place());
    CHECK(on_x_gradient.values() == x_gradient);
  }
}

TEST_CASE("softmax cross entropy: loss and gradient, also of large logits") {
  constexpr std::size_t images = 37;
  constexpr std::size_t classes = 10;
  std::vector<float> logits = numbers(images * classes, 12);
  for (std::size_t i = 0; i < classes; ++i) logits[i] *= 50;
  std::vector<std::uint8_t> labels(images);
  std::vector<double> gradient(logits.size());
  std::vector<double> losses(images);
  for (std::size_t image = 0; image < images; ++image) {
    labels[image] = static_cast<std::uint8_t>(image % classes);
    const float* const z = &logits[image * classes];
    const double largest = *std::max_element(z, z + classes);
    double sum = 0;
    for (std::size_t i = 0; i < classes; ++i) sum += std::exp(static_cast<double>(z[i]) - largest);
    for (std::size_t i = 0; i < classes; ++i) {
      const double p = std::exp(static_cast<double>(z[i]) - largest) / sum;
      gradient[image * classes + i] = 0.25 * (p - (i == labels[image] ? 1 : 0));
    }
    losses[image] = std::log(sum) + largest - static_cast<double>(z[labels[image]]);
  }
  const Floats on_logits(logits);
  const Bytes on_labels(labels);
  const Floats on_gradient(gradient.size());
  const Longs on_losses(images);
  math().softmax_loss(queue(), images, classes, 0.25F, on_logits.place(), on_labels.place(), on_gradient.place(),
                      on_losses.place());
  CHECK(distance(on_gradient.values(), gradient) < 1e-6);
  const std::vector<std::int64_t> units = on_losses.values();
  for (std::size_t i = 0; i < images; ++i) {
    CHECK(static_cast<double>(units[i]) * neural::loss_unit == doctest::Approx(losses[i]).epsilon(1e-5));
  }
}

TEST_CASE("a loss that is no number counts as a very large one") {
  const Floats logits(std::vector<float>{std::nanf(""), 1, 2});
  const Bytes labels(std::vector<std::uint8_t>{1});
  const Floats gradient(3);
  const Longs losses(1);
  math().softmax_loss(queue(), 1, 3, 1, logits.place(), labels.place(), gradient.place(), losses.place());
  CHECK(static_cast<double>(losses.values()[0]) * neural::loss_unit == 1e6);
}

TEST_CASE("right answers, of equal ones the first, and their number") {
  const std::vector<float> logits{1, 2, 3, 5, 5, 4, -1, -2, -1.5F, 0, 0, 0};
  const Floats on_logits(logits);
  const Bytes labels(std::vector<std::uint8_t>{2, 1, 0, 0});
  const Longs right(4);
  math().right_answers(queue(), 4, 3, on_logits.place(), labels.place(), right.place());
  CHECK(right.values() == std::vector<std::int64_t>{1, 0, 1, 1});
  const Longs total(1);
  math().add_counts(queue(), 3, right.place(), false, total.place());
  CHECK(total.values() == std::vector<std::int64_t>{2});
  math().add_counts(queue(), 4, right.place(), true, total.place());
  CHECK(total.values() == std::vector<std::int64_t>{5});
  math().add_counts(queue(), 0, right.place(), false, total.place());
  CHECK(total.values() == std::vector<std::int64_t>{0});
}

TEST_CASE("a step with momentum") {
  constexpr std::size_t count = 1001;
  std::vector<float> value = numbers(count, 13);
  std::vector<float> velocity = numbers(count, 14);
  const std::vector<float> gradient = numbers(count, 15);
  const Floats on_value(value);
  const Floats on_velocity(velocity);
  const Floats on_gradient(gradient);
  math().momentum_step(queue(), count, 0.125F, 0.5F, on_value.place(), on_velocity.place(), on_gradient.place());
  for (std::size_t i = 0; i < count; ++i) {
    velocity[i] = 0.5F * velocity[i] + gradient[i];
    value[i] -= 0.125F * velocity[i];
  }
  CHECK(on_velocity.values() == velocity);
  CHECK(on_value.values() == value);
}

TEST_CASE("more rows and images than a grid of CUDA has blocks for") {
  constexpr std::size_t channels = 64;
  constexpr std::size_t pixels = 65536 * 4 + 9;
  std::vector<float> y = numbers(pixels * channels, 16);
  const std::vector<float> bias = numbers(channels, 17);
  const Floats on_y(y);
  const Floats on_bias(bias);
  math().bias_relu(queue(), pixels, channels, false, on_y.place(), on_bias.place());
  for (std::size_t i = 0; i < y.size(); ++i) y[i] += bias[i % channels];
  CHECK(on_y.values() == y);

  const Floats transposed(y.size());
  math().transpose(queue(), channels, pixels, on_y.place(), transposed.place());
  std::vector<float> exact(y.size());
  for (std::size_t i = 0; i < y.size(); ++i) exact[i % pixels * channels + i / pixels] = y[i];
  CHECK(transposed.values() == exact);

  const Floats sums(pixels * channels);
  math().column_sums(queue(), pixels, channels, 1, on_y.place(), sums.place());
  CHECK(sums.values() == y);

  const Images small{65536 + 3, 1, 2};
  const std::vector<float> x = numbers(small.size() * 4, 18);
  const Floats on_x(x);
  const Floats pooled(small.size());
  const Bytes map(small.size());
  math().max_pool(queue(), small, on_x.place(), pooled.place(), map.place());
  std::vector<float> largest(small.size());
  std::vector<float> back(x.size());
  std::vector<std::uint8_t> where(small.size());
  for (std::size_t i = 0; i < largest.size(); ++i) {
    const auto place = [&](std::size_t one) { return i / 2 * 8 + one * 2 + i % 2; };
    for (std::uint8_t one = 1; one < 4; ++one) {
      if (x[place(one)] > x[place(where[i])]) where[i] = one;
    }
    largest[i] = x[place(where[i])];
    back[place(where[i])] = largest[i] > 0 ? 1.0F : 0.0F;
  }
  CHECK(pooled.values() == largest);
  CHECK(map.values() == where);
  const Floats ones(std::vector<float>(small.size(), 1));
  const Floats on_back(x.size());
  math().max_pool_backward(queue(), small, pooled.place(), map.place(), ones.place(), on_back.place());
  CHECK(on_back.values() == back);

  const Floats columns(small.size() * 9);
  math().im2col(queue(), small, pooled.place(), columns.place());
  std::vector<float> middle(small.size() * 9);  // images of one pixel: all around it is outside
  for (std::size_t i = 0; i < small.size(); ++i) middle[i / 2 * 18 + 8 + i % 2] = largest[i];
  CHECK(columns.values() == middle);
  const Floats again(small.size());
  math().col2im(queue(), small, columns.place(), again.place());
  CHECK(again.values() == largest);
}

#ifdef SWAPMM_TEST_ON_CUDA  // it takes a gigabyte
TEST_CASE("more rows of an LSTM than a grid of CUDA has blocks for") {
  constexpr std::size_t hidden = 43;
  constexpr std::size_t rows = 65535 * 5 + 2;
  const std::vector<float> sums = numbers(rows * 4 * hidden, 19);
  const Floats gates(sums);
  const Floats bias(std::vector<float>(4 * hidden));
  const Floats before(numbers(rows * hidden, 20));
  const Floats cells(rows * hidden);
  const Floats out(rows * hidden);
  math().lstm(queue(), rows, hidden, gates.place(), bias.place(), before.place(), cells.place(), out.place());
  const std::vector<float> all = out.values();
  // The last rows are those of a call for them alone.
  constexpr std::size_t last = 5;
  const auto tail = [](const std::vector<float>& values, std::size_t columns) {
    return std::vector<float>(values.end() - static_cast<std::ptrdiff_t>(last * columns), values.end());
  };
  const Floats few_gates(tail(sums, 4 * hidden));
  const Floats few_before(tail(before.values(), hidden));
  const Floats few_cells(last * hidden);
  const Floats few_out(last * hidden);
  math().lstm(queue(), last, hidden, few_gates.place(), bias.place(), few_before.place(), few_cells.place(),
              few_out.place());
  CHECK(few_out.values() == tail(all, hidden));
  CHECK(few_cells.values() == tail(cells.values(), hidden));
  CHECK(few_gates.values() == tail(gates.values(), 4 * hidden));
  const Floats out_gradient(all);
  const Floats few_gradient(tail(all, hidden));
  const Floats cells_gradient(before.values());
  const Floats few_cells_gradient(tail(before.values(), hidden));
  math().lstm_backward(queue(), rows, hidden, gates.place(), before.place(), cells.place(), out_gradient.place(),
                       cells_gradient.place());
  math().lstm_backward(queue(), last, hidden, few_gates.place(), few_before.place(), few_cells.place(),
                       few_gradient.place(), few_cells_gradient.place());
  CHECK(few_gates.values() == tail(gates.values(), 4 * hidden));
  CHECK(few_cells_gradient.values() == tail(cells_gradient.values(), hidden));
}
#endif
