// SPDX-License-Identifier: Apache-2.0
#pragma once

// The network's shape, and what its weights are in the beginning.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "neural/random.hpp"
#include "neural/shapes.hpp"

namespace fashion {

struct Settings {
  std::size_t batch = 512;
  std::size_t parts = 4;  ///< of a batch: each activation is as many tensors, and each operation works on one part
  std::size_t channels = 32;
  std::size_t hidden = 128;  ///< width of the dense layer
  std::uint32_t seed = 1;    ///< of the first weights
  float momentum = 0.9F;
  /// Pieces that the batch is divided into, one after the other: evaluations have as many images at a time as a piece.
  std::size_t pieces = 1;
  /// Operations of the forward pass may run again (swapmm::replayable). Its tensors then live until the step ends.
  bool replayable = false;

  [[nodiscard]] std::size_t images_per_part() const { return std::max<std::size_t>(1, batch / pieces / parts); }
  [[nodiscard]] std::size_t evaluated() const { return images_per_part() * parts; }
};

inline constexpr std::size_t classes = 10;

/// What a layer computes on one part of the batch. Dense layers are convolutions on images of one pixel.
struct Layer {
  std::string name;
  neural::Convolution shape;
  bool relu = true;
  bool pool = false;  ///< 2 x 2, behind the ReLU

  [[nodiscard]] std::size_t weights() const { return shape.columns() * shape.out; }
  /// Numbers of the convolution's output, and of the pool's where there is one.
  [[nodiscard]] std::size_t outputs() const { return shape.pixels() * shape.out; }
  [[nodiscard]] neural::Images pooled() const { return {shape.images, shape.side / 2, shape.out}; }
};

/// From the images to the logits. Throws std::invalid_argument for settings that make no sense.
[[nodiscard]] inline std::vector<Layer> architecture(const Settings& settings) {
  if (settings.batch == 0 || settings.parts == 0 || settings.channels == 0 || settings.hidden == 0 ||
      settings.pieces == 0 || settings.batch % settings.parts != 0) {
    throw std::invalid_argument(
        "batch, parts, pieces, channels and hidden are at least 1, and the batch divides into parts");
  }
  const std::size_t n = settings.images_per_part();
  const std::size_t c = settings.channels;
  return {
      {"conv1", {.images = n, .side = 28, .in = 1, .out = c, .size = 3}},
      {"conv2", {.images = n, .side = 28, .in = c, .out = c, .size = 1}},
      {"conv3", {.images = n, .side = 28, .in = c, .out = c, .size = 1}, true, true},
      {"conv4", {.images = n, .side = 14, .in = c, .out = c, .size = 3}},
      {"conv5", {.images = n, .side = 14, .in = c, .out = c, .size = 1}, true, true},
      {"dense1", {.images = n, .side = 1, .in = 49 * c, .out = settings.hidden, .size = 1}},
      {"dense2", {.images = n, .side = 1, .in = settings.hidden, .out = classes, .size = 1}, false},
  };
}

/// Per layer; biases begin with 0. The last layer's are a tenth of the others': the first answers are then about
/// equally likely, instead of sure and wrong.
[[nodiscard]] inline std::vector<std::vector<float>> first_weights(const std::vector<Layer>& layers,
                                                                   std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<std::vector<float>> weights;
  for (const Layer& layer : layers) {
    weights.push_back(neural::he_values(layer.weights(), layer.shape.columns(), random));
  }
  for (float& value : weights.back()) value *= 0.1F;
  return weights;
}

}  // namespace fashion
