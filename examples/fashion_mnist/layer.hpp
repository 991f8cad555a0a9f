// SPDX-License-Identifier: Apache-2.0
#pragma once

// One layer's unit operations: each works on one part of the batch, declares what it reads and writes, and queues its
// steps through Math.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <swapmm/swapmm.hpp>

#include "fashion_mnist/architecture.hpp"
#include "neural/parameter.hpp"
#include "neural/steps.hpp"

namespace fashion {

/// The device's work area of an operation that may need none.
template <class Math, class Operation>
[[nodiscard]] typename Math::Place area_of(Operation& op, const neural::WorkArea& work) {
  return work.bytes() == 0 ? typename Math::Place() : typename Math::Place(op.scratch());
}

template <class Math>
class LayerOperations {
 public:
  using Backend = typename Math::Backend;
  using Manager = swapmm::MemoryManager<Backend>;
  using Floats = swapmm::Tensor<float, Backend>;
  using Map = swapmm::Tensor<std::uint8_t, Backend>;

  LayerOperations(Math& math, Manager& manager, const Layer& layer, const std::vector<float>& first_weights)
      : math_(&math),
        manager_(&manager),
        layer_(layer),
        weights_(manager, {layer.shape.columns(), layer.shape.out}, layer.name + ".weights", first_weights),
        bias_(manager, {layer.shape.out}, layer.name + ".bias", std::vector<float>(layer.shape.out)),
        forward_work_(neural::forward_work(math, layer.shape)),
        weights_work_(neural::weights_work(math, layer.shape)),
        input_work_(neural::input_work(math, layer.shape)) {}

  [[nodiscard]] const Layer& layer() const { return layer_; }
  [[nodiscard]] const neural::Parameter<Math>& weights() const { return weights_; }
  [[nodiscard]] const neural::Parameter<Math>& bias() const { return bias_; }
  [[nodiscard]] neural::Parameter<Math>& weights() { return weights_; }
  [[nodiscard]] neural::Parameter<Math>& bias() { return bias_; }

  /// Convolution, bias and ReLU.
  [[nodiscard]] Floats forward(std::size_t part, const Floats& x) {
    const neural::Convolution& c = layer_.shape;
    Floats y = tensor<float>({c.images, c.side, c.side, c.out}, "out", part);
    manager_->run(label("forward", part), swapmm::reads(x, weights_.value(), bias_.value()), swapmm::writes(y),
                  swapmm::scratch(forward_work_.bytes()), [&](auto& op) {
                    neural::convolve(*math_, op.queue(), c, layer_.relu, op[x], op[weights_.value()], op[bias_.value()],
                                     op[y], forward_work_, area_of<Math>(op, forward_work_));
                  });
    return y;
  }

  struct Pooled {
    Floats out;
    Map map;  ///< where each number came from
  };
  [[nodiscard]] Pooled pool(std::size_t part, const Floats& x) {
    const auto [count, side, channels] = layer_.pooled();
    Pooled y{tensor<float>({count, side, side, channels}, "pooled", part),
             tensor<std::uint8_t>({count, side, side, channels}, "map", part)};
    manager_->run(label("pool", part), swapmm::reads(x), swapmm::writes(y.out, y.map),
                  [&](auto& op) { math_->max_pool(op.queue(), layer_.pooled(), op[x], op[y.out], op[y.map]); });
    return y;
  }

  /// From the gradient of the pool's output to the one of the convolution's, before its ReLU.
  [[nodiscard]] Floats pool_backward(std::size_t part, const Floats& y, const Map& map, const Floats& y_gradient) {
    const neural::Convolution& c = layer_.shape;
    Floats gradient = tensor<float>({c.images, c.side, c.side, c.out}, "out.gradient", part);
    manager_->run(label("pool.backward", part), swapmm::reads(y, map, y_gradient), swapmm::writes(gradient),
                  [&](auto& op) {
                    math_->max_pool_backward(op.queue(), layer_.pooled(), op[y], op[map], op[y_gradient], op[gradient]);
                  });
    return gradient;
  }

  /// Adds this part's share to the gradients of weights and bias; the first part begins them.
  void weights_backward(std::size_t part, const Floats& x, const Floats& y_gradient, const Floats& weights_gradient,
                        const Floats& bias_gradient) {
    const bool keep = part > 0;
    swapmm::Bundle<Backend> bundle;
    bundle.reads(x, y_gradient).scratch(swapmm::Bytes{weights_work_.bytes()});
    if (keep) {
      bundle.updates(weights_gradient, bias_gradient);
    } else {
      bundle.writes(weights_gradient, bias_gradient);
    }
    manager_->run(label("weights.backward", part), bundle, [&](auto& op) {
      neural::convolve_weights_backward(*math_, op.queue(), layer_.shape, keep, op[x], op[y_gradient],
                                        op[weights_gradient], op[bias_gradient], weights_work_,
                                        area_of<Math>(op, weights_work_));
    });
  }

  /// The gradient of this layer's input.
  [[nodiscard]] Floats input_backward(std::size_t part, const Floats& y_gradient, const swapmm::Shape& shape,
                                      const std::string& name) {
    Floats gradient = manager_->template tensor<float>(shape, name, swapmm::transient);
    manager_->run(label("input.backward", part), swapmm::reads(y_gradient, weights_.value()), swapmm::writes(gradient),
                  swapmm::scratch(input_work_.bytes()), [&](auto& op) {
                    neural::convolve_input_backward(*math_, op.queue(), layer_.shape, op[y_gradient],
                                                    op[weights_.value()], op[gradient], input_work_,
                                                    area_of<Math>(op, input_work_));
                  });
    return gradient;
  }

  /// Through this layer's own ReLU, in place.
  void relu_backward(std::size_t part, const Floats& y, const Floats& gradient) {
    manager_->run(label("relu.backward", part), swapmm::reads(y), swapmm::updates(gradient),
                  [&](auto& op) { math_->relu_backward(op.queue(), y.size(), op[y], op[gradient]); });
  }

  void learn(const Floats& weights_gradient, const Floats& bias_gradient, float rate, float momentum) {
    weights_.learn(*math_, weights_gradient, rate, momentum);
    bias_.learn(*math_, bias_gradient, rate, momentum);
  }

  /// "conv1.out.2"
  [[nodiscard]] std::string label(std::string_view what, std::size_t part) const {
    return layer_.name + "." + std::string(what) + "." + std::to_string(part);
  }

 private:
  template <class T>
  [[nodiscard]] swapmm::Tensor<T, Backend> tensor(const swapmm::Shape& shape, std::string_view what, std::size_t part) {
    return manager_->template tensor<T>(shape, label(what, part), swapmm::transient);
  }

  Math* math_;
  Manager* manager_;
  Layer layer_;
  neural::Parameter<Math> weights_;
  neural::Parameter<Math> bias_;
  neural::WorkArea forward_work_;
  neural::WorkArea weights_work_;
  neural::WorkArea input_work_;
};

}  // namespace fashion
