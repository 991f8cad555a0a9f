// SPDX-License-Identifier: Apache-2.0
#pragma once

// One layer's unit operations: each works on one part of the batch, declares what it reads and writes, and queues its
// steps through Math.

#include <cstddef>
#include <map>
#include <memory>
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
        bias_(manager, {layer.shape.out}, layer.name + ".bias", std::vector<float>(layer.shape.out)) {}

  [[nodiscard]] const Layer& layer() const { return layer_; }
  [[nodiscard]] const neural::Parameter<Math>& weights() const { return weights_; }
  [[nodiscard]] const neural::Parameter<Math>& bias() const { return bias_; }
  [[nodiscard]] neural::Parameter<Math>& weights() { return weights_; }
  [[nodiscard]] neural::Parameter<Math>& bias() { return bias_; }

  /// Convolution, bias and ReLU. `again`: the operation may run again, so `x` and what it returns must live until the
  /// iteration ends.
  [[nodiscard]] std::shared_ptr<Floats> forward(std::size_t part, const Floats& x, bool again = false) {
    const Shaped& of = shaped(x.shape()[0]);
    const neural::Convolution& c = of.shape;
    auto made = std::make_shared<Floats>(tensor<float>({c.images, c.side, c.side, c.out}, "out", part));
    swapmm::Bundle<Backend> bundle;
    bundle.reads(x, weights_.value(), bias_.value()).writes(*made).scratch(swapmm::Bytes{of.forward_work.bytes()});
    if (again) bundle.replayable();
    manager_->run(label("forward", part), bundle, [this, &of, &x, &y = *made](auto& op) {
      neural::convolve(*math_, op.queue(), of.shape, layer_.relu, op[x], op[weights_.value()], op[bias_.value()], op[y],
                       of.forward_work, area_of<Math>(op, of.forward_work));
    });
    return made;
  }

  struct Pooled {
    Floats out;
    Map map;  ///< where each number came from
  };
  /// `again`: see forward().
  [[nodiscard]] std::shared_ptr<Pooled> pool(std::size_t part, const Floats& x, bool again = false) {
    const neural::Images images = pooled(x);
    const swapmm::Shape shape{images.count, images.side, images.side, images.channels};
    auto made = std::make_shared<Pooled>(
        Pooled{tensor<float>(shape, "pooled", part), tensor<std::uint8_t>(shape, "map", part)});
    swapmm::Bundle<Backend> bundle;
    bundle.reads(x).writes(made->out, made->map);
    if (again) bundle.replayable();
    manager_->run(label("pool", part), bundle, [this, images, &x, &y = *made](auto& op) {
      math_->max_pool(op.queue(), images, op[x], op[y.out], op[y.map]);
    });
    return made;
  }

  /// From the gradient of the pool's output to the one of the convolution's, before its ReLU.
  [[nodiscard]] Floats pool_backward(std::size_t part, const Floats& y, const Map& map, const Floats& y_gradient) {
    const neural::Convolution& c = shaped(y.shape()[0]).shape;
    Floats gradient = tensor<float>({c.images, c.side, c.side, c.out}, "out.gradient", part);
    manager_->run(label("pool.backward", part), swapmm::reads(y, map, y_gradient), swapmm::writes(gradient),
                  [&](auto& op) {
                    math_->max_pool_backward(op.queue(), pooled(y), op[y], op[map], op[y_gradient], op[gradient]);
                  });
    return gradient;
  }

  /// Begins the gradients of weights and bias with this part's share, or adds it to them if they are to `keep` what
  /// they have.
  void weights_backward(std::size_t part, bool keep, const Floats& x, const Floats& y_gradient,
                        const Floats& weights_gradient, const Floats& bias_gradient) {
    const Shaped& of = shaped(x.shape()[0]);
    swapmm::Bundle<Backend> bundle;
    bundle.reads(x, y_gradient).scratch(swapmm::Bytes{of.weights_work.bytes()});
    if (keep) {
      bundle.updates(weights_gradient, bias_gradient);
    } else {
      bundle.writes(weights_gradient, bias_gradient);
    }
    manager_->run(label("weights.backward", part), bundle, [&](auto& op) {
      neural::convolve_weights_backward(*math_, op.queue(), of.shape, keep, op[x], op[y_gradient], op[weights_gradient],
                                        op[bias_gradient], of.weights_work, area_of<Math>(op, of.weights_work));
    });
  }

  /// The gradient of this layer's input.
  [[nodiscard]] Floats input_backward(std::size_t part, const Floats& y_gradient, const swapmm::Shape& shape,
                                      const std::string& name) {
    const Shaped& of = shaped(shape[0]);
    Floats gradient = manager_->template tensor<float>(shape, name, swapmm::transient);
    manager_->run(label("input.backward", part), swapmm::reads(y_gradient, weights_.value()), swapmm::writes(gradient),
                  swapmm::scratch(of.input_work.bytes()), [&](auto& op) {
                    neural::convolve_input_backward(*math_, op.queue(), of.shape, op[y_gradient], op[weights_.value()],
                                                    op[gradient], of.input_work, area_of<Math>(op, of.input_work));
                  });
    return gradient;
  }

  /// Through this layer's own ReLU, in place.
  void relu_backward(std::size_t part, const Floats& y, const Floats& gradient) {
    manager_->run(label("relu.backward", part), swapmm::reads(y), swapmm::updates(gradient),
                  [&](auto& op) { math_->relu_backward(op.queue(), y.size(), op[y], op[gradient]); });
  }

  /// From gradients on the device (Floats), or from sums that the host has (spans).
  template <class Gradient>
  void learn(const Gradient& weights_gradient, const Gradient& bias_gradient, float rate, float momentum) {
    weights_.learn(*math_, weights_gradient, rate, momentum);
    bias_.learn(*math_, bias_gradient, rate, momentum);
  }

  /// "conv1.out.2"
  [[nodiscard]] std::string label(std::string_view what, std::size_t part) const {
    return layer_.name + "." + std::string(what) + "." + std::to_string(part);
  }

 private:
  // The convolution on so many images, and its work areas.
  struct Shaped {
    neural::Convolution shape;
    neural::WorkArea forward_work;
    neural::WorkArea weights_work;
    neural::WorkArea input_work;
  };
  // Parts, and pieces of a batch, need not be of one size. References stay valid.
  [[nodiscard]] const Shaped& shaped(std::size_t images) {
    const auto known = shaped_.find(images);
    if (known != shaped_.end()) return known->second;
    neural::Convolution shape = layer_.shape;
    shape.images = images;
    return shaped_
        .emplace(images, Shaped{shape, neural::forward_work(*math_, shape), neural::weights_work(*math_, shape),
                                neural::input_work(*math_, shape)})
        .first->second;
  }
  [[nodiscard]] neural::Images pooled(const Floats& x) const {
    neural::Images images = layer_.pooled();
    images.count = x.shape()[0];
    return images;
  }

  template <class T>
  [[nodiscard]] swapmm::Tensor<T, Backend> tensor(const swapmm::Shape& shape, std::string_view what, std::size_t part) {
    return manager_->template tensor<T>(shape, label(what, part), swapmm::transient);
  }

  Math* math_;
  Manager* manager_;
  Layer layer_;
  neural::Parameter<Math> weights_;
  neural::Parameter<Math> bias_;
  std::map<std::size_t, Shaped> shaped_;  // by number of images
};

}  // namespace fashion
