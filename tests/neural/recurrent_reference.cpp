// SPDX-License-Identifier: Apache-2.0
#include "neural/recurrent_reference.hpp"

#include <cmath>
#include <numeric>

namespace swapmm::test {
namespace {

constexpr std::size_t side = 28;
constexpr std::size_t filled_side = 32;  // of a row, the weights of whose end meet nothing but zeros
constexpr std::size_t classes = 10;

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// sums += x * weights
void add_product(std::span<const double> x, std::span<const double> weights, std::vector<double>& sums) {
  for (std::size_t i = 0; i < x.size(); ++i) {
    for (std::size_t j = 0; j < sums.size(); ++j) sums[j] += x[i] * weights[i * sums.size() + j];
  }
}

}  // namespace

LstmState lstm(std::span<const double> sums, std::span<const double> cells_before) {
  const std::size_t hidden = cells_before.size();
  LstmState after;
  for (std::size_t j = 0; j < hidden; ++j) {
    const double input = sigmoid(sums[j]);
    const double forget = sigmoid(sums[hidden + j]);
    const double candidate = std::tanh(sums[2 * hidden + j]);
    const double output = sigmoid(sums[3 * hidden + j]);
    after.cells.push_back(forget * cells_before[j] + input * candidate);
    after.out.push_back(output * std::tanh(after.cells.back()));
  }
  return after;
}

std::vector<std::size_t> RecurrentReference::begins() const {
  const std::size_t gates = 4 * hidden_;
  const std::vector<std::size_t> sizes{filled_side * gates, hidden_ * gates, gates, hidden_ * classes, classes};
  std::vector<std::size_t> result{0};
  for (const std::size_t size : sizes) result.push_back(result.back() + size);
  return result;
}

std::vector<double> RecurrentReference::logits(std::span<const double> parameters, std::span<const float> image) const {
  const std::vector<std::size_t> at = begins();
  const auto tensor = [&](std::size_t i) { return parameters.subspan(at[i], at[i + 1] - at[i]); };
  LstmState state{std::vector<double>(hidden_), std::vector<double>(hidden_)};
  for (std::size_t row = 0; row < side; ++row) {
    const auto numbers = image.subspan(row * side, side);
    std::vector<double> sums(tensor(2).begin(), tensor(2).end());
    add_product(std::vector<double>(numbers.begin(), numbers.end()), tensor(0), sums);
    add_product(state.out, tensor(1), sums);
    state = lstm(sums, state.cells);
  }
  std::vector<double> result(tensor(4).begin(), tensor(4).end());
  add_product(state.out, tensor(3), result);
  return result;
}

double RecurrentReference::loss(std::span<const double> parameters, std::span<const float> images,
                                std::span<const std::uint8_t> labels) const {
  double sum = 0;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const std::vector<double> z = logits(parameters, images.subspan(i * side * side, side * side));
    const double exponentials =
        std::accumulate(z.begin(), z.end(), 0.0, [](double a, double b) { return a + std::exp(b); });
    sum += std::log(exponentials) - z[labels[i]];
  }
  return sum / static_cast<double>(labels.size());
}

}  // namespace swapmm::test
