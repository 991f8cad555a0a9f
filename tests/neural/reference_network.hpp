// SPDX-License-Identifier: Apache-2.0
#pragma once

// The network forward, in double and in plain loops: what the one on the device is measured by.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "fashion_mnist/architecture.hpp"

namespace swapmm::test {

class ReferenceNetwork {
 public:
  explicit ReferenceNetwork(const fashion::Settings& settings) : layers_(fashion::architecture(settings)) {}

  /// Parameters as Network::weights() gives them.
  [[nodiscard]] std::vector<double> logits(std::span<const double> parameters, std::span<const float> image) const {
    std::vector<double> x(image.begin(), image.end());
    for (const fashion::Layer& layer : layers_) {
      const auto weights = parameters.first(layer.weights());
      const auto bias = parameters.subspan(weights.size(), layer.shape.out);
      parameters = parameters.subspan(weights.size() + bias.size());
      x = convolved(layer, weights, bias, x);
      if (layer.pool) x = pooled(layer, x);
    }
    return x;
  }

  /// The mean over all images.
  [[nodiscard]] double loss(std::span<const double> parameters, std::span<const float> images,
                            std::span<const std::uint8_t> labels) const {
    double sum = 0;
    for (std::size_t i = 0; i < labels.size(); ++i) {
      const std::vector<double> z = logits(parameters, images.subspan(i * 784, 784));
      double exponentials = 0;
      for (const double value : z) exponentials += std::exp(value);
      sum += std::log(exponentials) - z[labels[i]];
    }
    return sum / static_cast<double>(labels.size());
  }

  /// Where each of the parameters' tensors begins, and the end of the last.
  [[nodiscard]] std::vector<std::size_t> begins() const {
    std::vector<std::size_t> result{0};
    for (const fashion::Layer& layer : layers_) {
      result.push_back(result.back() + layer.weights());
      result.push_back(result.back() + layer.shape.out);
    }
    return result;
  }

 private:
  static std::vector<double> convolved(const fashion::Layer& layer, std::span<const double> weights,
                                       std::span<const double> bias, const std::vector<double>& x) {
    const auto& s = layer.shape;
    const auto side = static_cast<std::ptrdiff_t>(s.side);
    const auto reach = static_cast<std::ptrdiff_t>(s.size / 2);
    std::vector<double> y;
    for (std::ptrdiff_t row = 0; row < side; ++row) {
      for (std::ptrdiff_t column = 0; column < side; ++column) {
        std::vector<double> sum(bias.begin(), bias.end());
        std::size_t weight = 0;
        for (std::ptrdiff_t dy = -reach; dy <= reach; ++dy) {
          for (std::ptrdiff_t dx = -reach; dx <= reach; ++dx) {
            const bool outside = row + dy < 0 || row + dy >= side || column + dx < 0 || column + dx >= side;
            for (std::size_t in = 0; in < s.in; ++in) {
              const auto pixel = static_cast<std::size_t>(outside ? 0 : (row + dy) * side + column + dx);
              const double value = outside ? 0 : x[pixel * s.in + in];
              for (std::size_t out = 0; out < s.out; ++out) sum[out] += value * weights[weight++];
            }
          }
        }
        for (const double value : sum) y.push_back(layer.relu ? std::max(value, 0.0) : value);
      }
    }
    return y;
  }

  static std::vector<double> pooled(const fashion::Layer& layer, const std::vector<double>& x) {
    const std::size_t side = layer.pooled().side;
    const std::size_t channels = layer.pooled().channels;
    std::vector<double> y;
    for (std::size_t i = 0; i < side * side * channels; ++i) {
      const std::size_t pixel = i / channels / side * 4 * side + i / channels % side * 2;
      const auto at = [&](std::size_t further) { return x[(pixel + further) * channels + i % channels]; };
      y.push_back(std::max(std::max(at(0), at(1)), std::max(at(2 * side), at(2 * side + 1))));
    }
    return y;
  }

  std::vector<fashion::Layer> layers_;
};

}  // namespace swapmm::test
