// SPDX-License-Identifier: Apache-2.0
#pragma once

// Small networks, and pictures for them without any file.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "fashion_mnist/architecture.hpp"

namespace swapmm::test {

inline fashion::Settings small_settings() {
  fashion::Settings settings;
  settings.batch = 8;
  settings.parts = 2;
  settings.channels = 4;
  settings.hidden = 16;
  return settings;
}

struct Batch {
  std::vector<float> images;
  std::vector<std::uint8_t> labels;
};

/// Noise, with a brighter square where the label says.
inline Batch batch(std::size_t count, std::uint32_t seed) {
  Batch made;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t label = (i * 7 + seed) % 10;
    made.labels.push_back(static_cast<std::uint8_t>(label));
    for (std::size_t pixel = 0; pixel < 784; ++pixel) {
      seed = seed * 1664525U + 1013904223U;
      const bool bright = pixel / 28 / 6 == label / 3 && pixel % 28 / 9 == label % 3;
      made.images.push_back(static_cast<float>(seed >> 8U) / 16777216.0F - 0.5F + (bright ? 1.0F : 0.0F));
    }
  }
  return made;
}

}  // namespace swapmm::test
