// SPDX-License-Identifier: Apache-2.0
// One step of an LSTM against plain loops in double: its kernels, and its unit operations with products that want work
// areas.
#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <numeric>
#include <random>
#include <vector>

#include <swapmm/swapmm.hpp>

#include "neural/device.hpp"
#include "neural/recurrent_reference.hpp"
#include "sequence/cell.hpp"

namespace {

using namespace swapmm;
using namespace swapmm::literals;
using Floats = test::Memory<float>;

struct CellShape {
  std::size_t rows;
  std::size_t hidden;
};
// None that fills a group of work items, and some with more numbers per row than a group is wide.
constexpr CellShape cell_shapes[] = {{1, 1}, {3, 5}, {2, 64}, {7, 130}};

std::vector<double> row_of(const std::vector<float>& values, std::size_t row, std::size_t columns) {
  const auto begin = values.begin() + static_cast<std::ptrdiff_t>(row * columns);
  return {begin, begin + static_cast<std::ptrdiff_t>(columns)};
}
std::vector<double> column_of(const std::vector<float>& values, std::size_t column, std::size_t columns) {
  std::vector<double> result;
  for (std::size_t i = column; i < values.size(); i += columns) result.push_back(static_cast<double>(values[i]));
  return result;
}

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  REQUIRE(a.size() == b.size());
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

}  // namespace

TEST_CASE("a step of the LSTM gives the gates, cells and output of plain loops") {
  for (const CellShape& shape : cell_shapes) {
    const std::size_t rows = shape.rows;
    const std::size_t hidden = shape.hidden;
    CAPTURE(hidden);
    const std::vector<float> sums = test::numbers(rows * 4 * hidden, 1);
    const std::vector<float> bias = test::numbers(4 * hidden, 2);
    const std::vector<float> before = test::numbers(rows * hidden, 3);
    const Floats gates(sums);
    const Floats on_bias(bias);
    const Floats on_before(before);
    const Floats cells(rows * hidden);
    const Floats out(rows * hidden);
    test::math().lstm(test::queue(), rows, hidden, gates.place(), on_bias.place(), on_before.place(), cells.place(),
                      out.place());

    std::vector<double> exact_cells;
    std::vector<double> exact_out;
    std::vector<double> exact_gates;
    for (std::size_t row = 0; row < rows; ++row) {
      std::vector<double> sum = row_of(sums, row, 4 * hidden);
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += static_cast<double>(bias[i]);
      const auto state = test::lstm(sum, row_of(before, row, hidden));
      exact_cells.insert(exact_cells.end(), state.cells.begin(), state.cells.end());
      exact_out.insert(exact_out.end(), state.out.begin(), state.out.end());
      for (std::size_t i = 0; i < sum.size(); ++i) {
        exact_gates.push_back(i / hidden == 2 ? std::tanh(sum[i]) : 1 / (1 + std::exp(-sum[i])));
      }
    }
    CHECK(test::distance(cells.values(), exact_cells) < 1e-6);
    CHECK(test::distance(out.values(), exact_out) < 1e-6);
    CHECK(test::distance(gates.values(), exact_gates) < 1e-6);
    CHECK(test::same_bits(on_before.values(), before));
    CHECK(test::same_bits(on_bias.values(), bias));
  }
}

TEST_CASE("gates far from 0 are 0 or 1, and make nothing that is no number") {
  const Floats gates(std::vector<float>{-500, 500, 500, -500});
  const Floats bias(std::vector<float>(4));
  const Floats before(std::vector<float>{3});
  const Floats cells(1);
  const Floats out(1);
  test::math().lstm(test::queue(), 1, 1, gates.place(), bias.place(), before.place(), cells.place(), out.place());
  CHECK(test::distance(gates.values(), std::vector<float>{0, 1, 1, 0}) < 1e-6);
  CHECK(cells.values() == std::vector<float>{3});  // all is remembered, nothing is added
  CHECK(std::abs(out.values().front()) < 1e-6F);
}

TEST_CASE("the way back through a step of the LSTM gives the slopes of the way there") {
  for (const CellShape& shape : cell_shapes) {
    const std::size_t rows = shape.rows;
    const std::size_t hidden = shape.hidden;
    CAPTURE(hidden);
    const std::vector<float> sums = test::numbers(rows * 4 * hidden, 4);
    const std::vector<float> before = test::numbers(rows * hidden, 5);
    const std::vector<float> of_out = test::numbers(rows * hidden, 6);
    const std::vector<float> of_cells = test::numbers(rows * hidden, 7);
    const Floats gates(sums);
    const Floats bias(std::vector<float>(4 * hidden));
    const Floats on_before(before);
    const Floats cells(rows * hidden);
    const Floats out(rows * hidden);
    const Floats out_gradient(of_out);
    const Floats cells_gradient(of_cells);
    const test::Math::Queue queue = test::queue();
    test::math().lstm(queue, rows, hidden, gates.place(), bias.place(), on_before.place(), cells.place(), out.place());
    test::math().lstm_backward(queue, rows, hidden, gates.place(), on_before.place(), cells.place(),
                               out_gradient.place(), cells_gradient.place());

    std::vector<double> sums_slopes;
    std::vector<double> before_slopes;
    for (std::size_t row = 0; row < rows; ++row) {
      std::vector<double> sum = row_of(sums, row, 4 * hidden);
      std::vector<double> cell = row_of(before, row, hidden);
      const auto loss = [&] {
        const auto state = test::lstm(sum, cell);
        double result = 0;
        for (std::size_t j = 0; j < hidden; ++j) {
          result += static_cast<double>(of_out[row * hidden + j]) * state.out[j];
          result += static_cast<double>(of_cells[row * hidden + j]) * state.cells[j];
        }
        return result;
      };
      for (double& x : sum) sums_slopes.push_back(test::slope(loss, x));
      for (double& x : cell) before_slopes.push_back(test::slope(loss, x));
    }
    CHECK(test::distance(gates.values(), sums_slopes) < 1e-6);
    CHECK(test::distance(cells_gradient.values(), before_slopes) < 1e-6);
  }
}

TEST_CASE("an LSTM whose products want work areas has them in its bundles, and is right") {
  constexpr std::size_t rows = 768;
  constexpr std::size_t columns = 28;
  constexpr std::size_t hidden = 512;
  constexpr std::size_t gates = 4 * hidden;
  test::require_work_areas({test::math().gemm_work({.m = rows, .n = gates, .k = hidden}),
                            test::math().gemm_work({.transpose_a = true, .m = hidden, .n = gates, .k = rows}),
                            test::math().gemm_work({.m = rows, .n = hidden, .k = gates})});

  MemoryManager manager(test::shared_backend(), {.device_budget = 128_MiB});
  std::mt19937 random(1);
  sequence::Cell<test::Math> cell(test::math(), manager, {.rows = rows, .columns = columns, .hidden = hidden}, random);
  const std::vector<float> x = test::numbers(rows * columns, 1);
  const std::vector<float> out = test::numbers(rows * hidden, 2);
  const std::vector<float> before = test::numbers(rows * hidden, 3);
  const auto tensor = [&](const char* name, const std::vector<float>& values) {
    auto made = manager.tensor<float>({rows, values.size() / rows}, name);
    made.upload(values);
    return made;
  };
  const auto on_x = tensor("x", x);
  const auto on_out = tensor("out", out);
  const auto on_before = tensor("cells", before);
  const auto out_gradient = tensor("out.gradient", test::numbers(rows * hidden, 4));
  const auto cells_gradient = cell.zeros("cells.gradient");
  const auto transposed = cell.transposed_weights();
  const auto sum = cell.new_gradients();

  const test::DeviceCalls calls;
  const auto step = cell.forward(0, on_x, on_before, on_out);
  const auto back = cell.backward(0, true, {on_x, on_out, on_before, step.cells}, step.gates, out_gradient,
                                  cells_gradient, transposed, sum);
  manager.synchronize();
  calls.check_no_bytes();

  const std::vector<float> of_x = cell.parameters()[0]->value().download();
  const std::vector<float> of_out = cell.parameters()[1]->value().download();
  const std::vector<float> bias = cell.parameters()[2]->value().download();
  const std::vector<float> gradients = step.gates.download();
  for (const std::size_t row : {std::size_t{0}, std::size_t{333}, rows - 1}) {
    CAPTURE(row);
    std::vector<double> sums(bias.begin(), bias.end());
    for (std::size_t j = 0; j < gates; ++j) {
      sums[j] += dot(row_of(x, row, columns), column_of(of_x, j, gates));
      sums[j] += dot(row_of(out, row, hidden), column_of(of_out, j, gates));
    }
    const auto state = test::lstm(sums, row_of(before, row, hidden));
    CHECK(test::distance(row_of(step.out.download(), row, hidden), state.out) < 1e-5);
    CHECK(test::distance(row_of(step.cells.download(), row, hidden), state.cells) < 1e-5);

    std::vector<double> slopes;
    for (std::size_t i = 0; i < hidden; ++i) {
      slopes.push_back(dot(row_of(gradients, row, gates), row_of(of_out, i, gates)));
    }
    CHECK(test::distance(row_of(back.download(), row, hidden), slopes) < 1e-5);
  }
  for (const std::size_t gate : {std::size_t{7}, gates - 1}) {
    CAPTURE(gate);
    const std::vector<double> gradient = column_of(gradients, gate, gates);
    std::vector<double> slopes;
    for (std::size_t i = 0; i < hidden; ++i) slopes.push_back(dot(column_of(out, i, hidden), gradient));
    CHECK(test::distance(column_of(sum.of_out.download(), gate, gates), slopes) < 1e-5);
    slopes.clear();
    for (std::size_t i = 0; i < columns; ++i) slopes.push_back(dot(column_of(x, i, columns), gradient));
    CHECK(test::distance(column_of(sum.of_rows.download(), gate, gates), slopes) < 1e-5);
    const double of_bias = dot(gradient, std::vector<double>(rows, 1));
    CHECK(static_cast<double>(sum.bias.download()[gate]) == doctest::Approx(of_bias).epsilon(1e-4));
  }
}
