// SPDX-License-Identifier: Apache-2.0
#pragma once

// A stack of dense layers, forward only, on any backend that `Math` knows. Nearly all of its memory are weights, which
// no operation writes: they go to the device when their layer comes, and are dropped there without a copy.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <swapmm/swapmm.hpp>

#include "neural/shapes.hpp"
#include "neural/steps.hpp"

namespace inference {

struct Settings {
  std::size_t layers = 24;
  std::size_t width = 1024;  ///< numbers per input, and per output of each layer
  std::size_t batch = 64;    ///< inputs side by side
  std::uint32_t seed = 1;    ///< of the weights

  /// Weights and biases.
  [[nodiscard]] swapmm::Bytes weights() const { return swapmm::Bytes{layers * (width + 1) * width * sizeof(float)}; }
  /// Input, or output, of a layer.
  [[nodiscard]] swapmm::Bytes values() const { return swapmm::Bytes{batch * width * sizeof(float)}; }
};

/// Uniform numbers between -bound and bound, the same with every compiler and library.
[[nodiscard]] inline std::vector<float> uniform(std::size_t count, double bound, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<float> values(count);
  for (float& value : values) {
    value = static_cast<float>(bound * (static_cast<double>(random()) / 2147483648.0 - 1));
  }
  return values;
}

/// A matrix of width x width, such that a layer's output is about as large as its input (He et al., 2015).
[[nodiscard]] inline std::vector<float> layer_weights(const Settings& settings, std::size_t layer) {
  const double bound = std::sqrt(6 / static_cast<double>(settings.width));
  return uniform(settings.width * settings.width, bound, settings.seed + static_cast<std::uint32_t>(2 * layer));
}
[[nodiscard]] inline std::vector<float> layer_bias(const Settings& settings, std::size_t layer) {
  return uniform(settings.width, 0.1, settings.seed + static_cast<std::uint32_t>(2 * layer + 1));
}

/// `Math` is a class like neural::OpenclMath. It, the manager and the stack are for one thread; the first two outlive
/// the stack.
template <class Math>
class Stack {
 public:
  using Backend = typename Math::Backend;
  using Manager = swapmm::MemoryManager<Backend>;

  using Floats = swapmm::Tensor<float, Backend>;

  /// The weights are uploaded.
  Stack(Math& math, Manager& manager, const Settings& settings)
      : Stack(math, manager, settings, [&](std::size_t layer, const std::string& name, bool is_bias) {
          const swapmm::Shape shape = shape_of(settings, is_bias);
          Floats made = manager.template tensor<float>(shape, name);
          made.upload(is_bias ? layer_bias(settings, layer) : layer_weights(settings, layer));
          return made;
        }) {}
  /// make(layer, name, is_bias) gives the tensors of weights: each layer's matrix, then its bias.
  template <class Make>
  Stack(Math& math, Manager& manager, const Settings& settings, Make&& make)
      : math_(math),
        manager_(manager),
        settings_(settings),
        shape_{.images = settings.batch, .in = settings.width, .out = settings.width},
        work_(neural::forward_work(math, shape_)),
        input_(manager.template tensor<float>({settings.batch, settings.width}, "input")) {
    for (std::size_t i = 0; i < settings.layers; ++i) {
      layers_.push_back({make(i, label(i, "weights"), false), make(i, label(i, "bias"), true)});
    }
  }

  [[nodiscard]] static swapmm::Shape shape_of(const Settings& settings, bool is_bias) {
    return is_bias ? swapmm::Shape{settings.width} : swapmm::Shape{settings.width, settings.width};
  }
  [[nodiscard]] static std::string label(std::size_t layer, const char* what) {
    return "layer" + std::to_string(layer) + "." + what;
  }

  /// What the stack makes of a batch of inputs, one after the other: iteration "infer". Waits for the device.
  [[nodiscard]] std::vector<float> infer(std::span<const float> inputs) {
    const auto iteration = manager_.iteration("infer");
    input_.upload(inputs);
    Floats x = forward(0, input_);
    for (std::size_t i = 1; i < layers_.size(); ++i) x = forward(i, x);  // the last one's output ends here
    return x.download();
  }

 private:
  struct Layer {
    Floats weights;
    Floats bias;
  };

  // max(x * weights + bias, 0)
  [[nodiscard]] Floats forward(std::size_t i, const Floats& x) {
    const Layer& layer = layers_[i];
    Floats y = manager_.template tensor<float>({settings_.batch, settings_.width}, label(i, "out"), swapmm::transient);
    manager_.run(label(i, "forward"), swapmm::reads(x, layer.weights, layer.bias), swapmm::writes(y),
                 swapmm::scratch(work_.bytes()), [&](auto& op) {
                   using Place = typename Math::Place;
                   const Place area = work_.bytes() == 0 ? Place() : Place(op.scratch());
                   neural::convolve(math_, op.queue(), shape_, true, op[x], op[layer.weights], op[layer.bias], op[y],
                                    work_, area);
                 });
    return y;
  }

  Math& math_;
  Manager& manager_;
  Settings settings_;
  neural::Convolution shape_;
  neural::WorkArea work_;
  Floats input_;
  std::vector<Layer> layers_;
};

}  // namespace inference
