// SPDX-License-Identifier: Apache-2.0
#pragma once

// A chain of layers as a list of operations, for a program that runs it twice: with swapmm and without.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <swapmm/swapmm.hpp>

#include "transformer/learned.hpp"
#include "transformer/shapes.hpp"

namespace swapmm::bench {

/// y = x * weights forward, and x's gradient backward, layer by layer; tensors of width x width numbers. Activations
/// are saved on the way forward and read on the way back, where the weights change with them.
struct Chain {
  std::size_t layers = 0;
  std::size_t width = 0;
  bool products = true;  ///< else operations of the same bundles that do next to nothing

  [[nodiscard]] std::size_t numbers() const { return width * width; }
  [[nodiscard]] std::size_t operations() const { return 2 * layers; }
  // Tensors: weights from 0, activations from `layers` (the first one is the input), two gradients.
  [[nodiscard]] std::size_t tensors() const { return 2 * layers + 2; }
  [[nodiscard]] std::size_t activation(std::size_t i) const { return layers + i; }
  [[nodiscard]] std::size_t gradient(std::size_t i) const { return 2 * layers + i % 2; }
  /// What layer i gives: the next one's input, and behind the last one what the way back begins with.
  [[nodiscard]] std::size_t output(std::size_t i) const { return i + 1 < layers ? activation(i + 1) : gradient(i + 1); }

  /// Of the first values, which neither grow nor fade from layer to layer.
  [[nodiscard]] float range() const { return products ? std::sqrt(3 / static_cast<float>(width)) : 1; }
  /// Forth and back by turns, far enough to change 16-bit weights.
  [[nodiscard]] static float rate(std::size_t iteration) { return iteration % 2 == 0 ? 0.1F : -0.1F; }
};

template <class Math, class In, class Out>
void queue_forward(Math& math, typename Math::Queue& queue, const Chain& c, const In& x, const In& weights,
                   const Out& y, const typename Math::Area& area) {
  if (c.products) {
    math.product(queue, transformer::whole(false, false, c.width, c.width, c.width), x, weights, y, area);
  } else {
    math.gelu(queue, c.numbers(), x, y);
  }
}
template <class Math, class In, class Out>
void queue_backward(Math& math, typename Math::Queue& queue, const Chain& c, float rate, const In& y_gradient,
                    const Out& weights, const In& x, const Out& x_gradient, const typename Math::Area& area) {
  if (c.products) {
    math.product(queue, transformer::whole(false, true, c.width, c.width, c.width), y_gradient, weights, x_gradient,
                 area);
  } else {
    math.gelu(queue, c.numbers(), y_gradient, x_gradient);
  }
  math.learn(queue, c.numbers(), rate, weights, x);
}

/// Bytes of work area of an operation.
template <class Math>
[[nodiscard]] std::size_t chain_work(const Math& math, const Chain& c) {
  return c.products ? math.product_work(transformer::whole(false, false, c.width, c.width, c.width)) : 0;
}

/// The chain on a manager whose budget is that part of all its tensors, and a work area.
template <class Math>
class ManagedChain {
 public:
  using Backend = typename Math::Backend;
  using Number = typename Math::Number;

  ManagedChain(const Backend& backend, Math& math, const Chain& chain, double part)
      : math_(math),
        chain_(chain),
        work_(chain_work(math, chain)),
        manager_(backend, Options{.device_budget = budget(part)}, Scheduler({.trial_iterations = 0})) {
    for (std::size_t i = 0; i < chain.tensors(); ++i) {
      tensors_.push_back(manager_.template tensor<Number>({chain.numbers()}, "tensor " + std::to_string(i)));
    }
    for (std::size_t i = 0; i <= chain.layers; ++i) {
      manager_.run("begin", writes(tensors_[i]), [&](auto& op) {
        math_.random(op.queue(), chain_.numbers(), i, chain_.range(), 0, op[tensors_[i]]);
      });
    }
  }

  void iterate() {
    const float rate = Chain::rate(iterations_++);
    const auto iteration = manager_.iteration("chain");
    for (std::size_t i = 0; i < chain_.layers; ++i) {
      const auto& x = tensors_[chain_.activation(i)];
      const auto& weights = tensors_[i];
      const auto& y = tensors_[chain_.output(i)];
      manager_.run("forward", reads(x, weights), writes(y), scratch(work_), [&](auto& op) {
        queue_forward(math_, op.queue(), chain_, op[x], op[weights], op[y], transformer::area_of<Math>(op, work_));
      });
    }
    for (std::size_t i = chain_.layers; i-- > 0;) {
      const auto& before = tensors_[chain_.gradient(i + 1)];
      const auto& weights = tensors_[i];
      const auto& x = tensors_[chain_.activation(i)];
      const auto& after = tensors_[chain_.gradient(i)];
      manager_.run("backward", reads(before, x), updates(weights), writes(after), scratch(work_), [&](auto& op) {
        queue_backward(math_, op.queue(), chain_, rate, op[before], op[weights], op[x], op[after],
                       transformer::area_of<Math>(op, work_));
      });
    }
  }
  void finish() { manager_.synchronize(); }
  [[nodiscard]] Report report() const { return manager_.report(); }

  /// 64 bits that depend on every bit of all weights.
  [[nodiscard]] std::uint64_t digest() {
    auto sum = manager_.template tensor<std::uint64_t>({1}, "digest");
    sum.upload(std::vector<std::uint64_t>{0});
    for (std::size_t i = 0; i < chain_.layers; ++i) {
      manager_.run("digest", reads(tensors_[i]), updates(sum),
                   [&](auto& op) { math_.digest(op.queue(), chain_.numbers(), i, op[tensors_[i]], op[sum]); });
    }
    return sum.download().front();
  }

 private:
  [[nodiscard]] Bytes budget(double part) const {
    const std::size_t tensor = (chain_.numbers() * sizeof(Number) + 511) / 512 * 512;
    const auto all = static_cast<double>(tensor * chain_.tensors());
    return Bytes{static_cast<std::uint64_t>(all * part) + work_ + 4096};
  }

  Math& math_;
  Chain chain_;
  std::size_t work_;
  MemoryManager<Backend> manager_;
  std::vector<Tensor<Number, Backend>> tensors_;
  std::size_t iterations_ = 0;
};

}  // namespace swapmm::bench
