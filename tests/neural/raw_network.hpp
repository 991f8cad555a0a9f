// SPDX-License-Identifier: Apache-2.0
#pragma once

// The same training without swapmm: a memory of its own for each tensor, one queue, and the same steps in the same
// order. What swapmm computes must be equal bit for bit.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "fashion_mnist/architecture.hpp"
#include "neural/device.hpp"
#include "neural/steps.hpp"

namespace swapmm::test {

class RawNetwork {
 public:
  RawNetwork(Math& math, const fashion::Settings& settings);

  void train(std::span<const float> images, std::span<const std::uint8_t> labels, float rate);
  /// As Network::weights().
  [[nodiscard]] std::vector<float> weights();

 private:
  using Place = Math::Place;

  // The memory of that name, made at its first use.
  DeviceBytes& memory(const std::string& name, std::size_t bytes);
  Place buffer(const std::string& name, std::size_t bytes) { return memory(name, bytes).place(); }
  Place floats(const std::string& name, std::size_t count) { return buffer(name, count * sizeof(float)); }
  Place area(const neural::WorkArea& work) { return work.bytes() == 0 ? Place() : buffer("work area", work.bytes()); }

  void forward(std::size_t i, std::size_t part);
  void backward(std::size_t i, std::size_t part);
  void learn(const std::string& name, std::size_t count, float rate);
  // What the layer reads of that part; for the one behind the last, the logits.
  Place input(std::size_t layer, std::size_t part);
  std::string input_name(std::size_t layer, std::size_t part) const;
  Place input_gradient(std::size_t layer, std::size_t part);
  std::size_t input_size(std::size_t layer) const;

  Math& math_;
  fashion::Settings settings_;
  std::vector<fashion::Layer> layers_;
  Math::Queue q_ = queue();
  std::unordered_map<std::string, DeviceBytes> memories_;
};

}  // namespace swapmm::test
