// SPDX-License-Identifier: Apache-2.0
#pragma once

// A program of matrix products and vector sums as data, to be run by whatever can multiply: a network of linear layers
// that learns one batch.

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace swapmm::test {

struct Matrix {
  std::string name;
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::vector<float> values{};  ///< empty: made anew in each iteration
  [[nodiscard]] std::size_t size() const { return rows * columns; }
  [[nodiscard]] bool given() const { return !values.empty(); }
};

/// c = a * b, of matrices by their position; m x n, over k. A transposed factor lies transposed in memory.
struct Gemm {
  std::string name;
  std::size_t a;
  std::size_t b;
  std::size_t c;
  bool transpose_a;
  bool transpose_b;
  std::size_t m;
  std::size_t n;
  std::size_t k;
};

/// y += factor * x
struct Axpy {
  std::string name;
  std::size_t x;
  std::size_t y;
  std::size_t count;
  float factor;
};

struct Network {
  std::vector<Matrix> matrices;
  std::vector<std::variant<Gemm, Axpy>> steps;  ///< of one iteration
  std::vector<std::size_t> weights;             ///< positions of the matrices that learn

  [[nodiscard]] std::size_t bytes() const {
    std::size_t bytes = 0;
    for (const Matrix& matrix : matrices) bytes += matrix.size() * sizeof(float);
    return bytes;
  }
};

namespace detail {

/// The same on every machine: uniform in [-scale, scale].
inline std::vector<float> numbers(std::size_t count, float scale, std::uint32_t seed) {
  std::vector<float> values(count);
  for (float& value : values) {
    seed = seed * 1664525U + 1013904223U;
    value = scale * (static_cast<float>(seed >> 8U) / 8388608.0F - 1.0F);
  }
  return values;
}

struct Builder {
  static constexpr std::size_t batch = 90;
  static constexpr std::size_t width = 130;  // no multiple of 16
  static constexpr std::size_t classes = 20;
  static constexpr float rate = 0.01F;

  std::size_t given(std::string name, std::size_t rows, std::size_t columns, float scale) {
    const auto seed = static_cast<std::uint32_t>(network.matrices.size() + 1);
    network.matrices.push_back({std::move(name), rows, columns, numbers(rows * columns, scale, seed)});
    return network.matrices.size() - 1;
  }
  std::size_t product(std::string name, std::size_t a, bool transpose_a, std::size_t b, bool transpose_b) {
    const Matrix& left = network.matrices[a];
    const Matrix& right = network.matrices[b];
    const std::size_t m = transpose_a ? left.columns : left.rows;
    const std::size_t k = transpose_a ? left.rows : left.columns;
    const std::size_t n = transpose_b ? right.rows : right.columns;
    const std::size_t c = network.matrices.size();
    network.matrices.push_back({name, m, n});
    network.steps.emplace_back(Gemm{std::move(name), a, b, c, transpose_a, transpose_b, m, n, k});
    return c;
  }
  void add(std::string name, std::size_t x, std::size_t y, float factor) {
    network.steps.emplace_back(Axpy{std::move(name), x, y, network.matrices[x].size(), factor});
  }

  Network network;
};

}  // namespace detail

/// That many square layers and a small last one.
inline Network linear_network(std::size_t layers) {
  using detail::Builder;
  Builder b;
  std::vector<std::size_t> activations{b.given("input", Builder::batch, Builder::width, 1.0F)};
  const std::size_t target = b.given("target", Builder::batch, Builder::classes, 1.0F);
  // Scaled so that values neither grow nor fade from layer to layer.
  for (std::size_t i = 0; i < layers; ++i) {
    b.network.weights.push_back(b.given("weights " + std::to_string(i), Builder::width, Builder::width, 0.15F));
  }
  b.network.weights.push_back(b.given("last weights", Builder::width, Builder::classes, 0.15F));

  const auto& weights = b.network.weights;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    activations.push_back(b.product("forward " + std::to_string(i), activations[i], false, weights[i], false));
  }
  std::size_t gradient = activations.back();
  b.add("loss", target, gradient, -1.0F);
  for (std::size_t i = weights.size(); i-- > 0;) {
    const std::size_t change = b.product("change " + std::to_string(i), activations[i], true, gradient, false);
    if (i > 0) gradient = b.product("backward " + std::to_string(i), gradient, false, weights[i], true);
    b.add("learn " + std::to_string(i), change, weights[i], -Builder::rate / static_cast<float>(Builder::batch));
  }
  return std::move(b.network);
}

/// On the host, in double.
class ExactNetwork {
 public:
  explicit ExactNetwork(const Network& network) : network_(network) {
    for (const Matrix& matrix : network.matrices) {
      values_.emplace_back(matrix.values.begin(), matrix.values.end());
      values_.back().resize(matrix.size());
    }
  }

  void iterate() {
    for (const auto& step : network_.steps) {
      std::visit([&](const auto& one) { run(one); }, step);
    }
  }

  [[nodiscard]] const std::vector<double>& values(std::size_t matrix) const { return values_[matrix]; }

 private:
  void run(const Gemm& g) {
    const std::vector<double>& a = values_[g.a];
    const std::vector<double>& b = values_[g.b];
    for (std::size_t i = 0; i < g.m; ++i) {
      for (std::size_t j = 0; j < g.n; ++j) {
        double sum = 0;
        for (std::size_t l = 0; l < g.k; ++l) {
          sum += a[g.transpose_a ? l * g.m + i : i * g.k + l] * b[g.transpose_b ? j * g.k + l : l * g.n + j];
        }
        values_[g.c][i * g.n + j] = sum;
      }
    }
  }
  void run(const Axpy& s) {
    for (std::size_t i = 0; i < s.count; ++i) {
      values_[s.y][i] += static_cast<double>(s.factor) * values_[s.x][i];
    }
  }

  const Network& network_;
  std::vector<std::vector<double>> values_;
};

}  // namespace swapmm::test
