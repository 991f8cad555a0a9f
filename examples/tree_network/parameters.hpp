// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "layers.hpp"
#include "simulated_networks/random.hpp"

namespace trees {

inline constexpr std::size_t convolutions = 3;

/// The shape of one array of weights.
struct ParameterShape {
  std::string name;
  std::size_t rows = 0;
  std::size_t columns = 0;
  [[nodiscard]] std::size_t size() const { return rows * columns; }
};

/// All weights of the network: the table of symbols, the convolutions, and the judge's.
[[nodiscard]] inline std::vector<ParameterShape> parameter_shapes() {
  std::vector<ParameterShape> shapes{{"table", symbol_count, width}};
  for (std::size_t i = 0; i < convolutions; ++i) shapes.push_back({"convolution " + std::to_string(i), rows, width});
  shapes.push_back({"judge", width + 1, 1});
  return shapes;
}

/// Small random weights, the same for each seed.
[[nodiscard]] inline std::vector<std::vector<float>> first_weights(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::vector<float>> weights;
  for (const ParameterShape& shape : parameter_shapes()) {
    weights.push_back(networks::random_weights(shape.size(), 0.25F, random));
  }
  return weights;
}

}  // namespace trees
