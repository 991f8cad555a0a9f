// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/swapmm.hpp>

namespace neural {

/// Weights or a bias: a value that learns, and its momentum. The manager outlives it.
template <class Math>
class Parameter {
 public:
  using Backend = typename Math::Backend;
  using Manager = swapmm::MemoryManager<Backend>;
  using Floats = swapmm::Tensor<float, Backend>;

  Parameter(Manager& manager, const swapmm::Shape& shape, std::string name, const std::vector<float>& first)
      : manager_(&manager),
        name_(std::move(name)),
        value_(manager.template tensor<float>(shape, name_)),
        velocity_(manager.template tensor<float>(shape, name_ + ".momentum")) {
    set(first);
  }

  /// Begins anew from these values.
  void set(std::span<const float> values) {
    value_.upload(values);
    velocity_.upload(std::vector<float>(values.size()));
  }

  [[nodiscard]] const Floats& value() const { return value_; }

  /// Of the same shape, without a value yet; for one iteration.
  [[nodiscard]] Floats new_gradient() const {
    return manager_->template tensor<float>(value_.shape(), name_ + ".gradient", swapmm::transient);
  }

  /// One unit operation: momentum and value move along the gradient.
  void learn(Math& math, const Floats& gradient, float rate, float momentum) {
    manager_->run(name_ + ".step", swapmm::updates(value_, velocity_), swapmm::reads(gradient), [&](auto& op) {
      math.momentum_step(op.queue(), gradient.size(), rate, momentum, op[value_], op[velocity_], op[gradient]);
    });
  }
  /// The same along a sum of gradients that the host has.
  void learn(Math& math, std::span<const float> sum, float rate, float momentum) {
    Floats gradient = manager_->template tensor<float>(value_.shape(), name_ + ".sum", swapmm::transient);
    gradient.upload(sum);
    learn(math, gradient, rate, momentum);
  }

  /// One unit operation: adds another gradient of this parameter to `sum`.
  void add(Math& math, const Floats& sum, const Floats& more) {
    manager_->run(name_ + ".add", swapmm::updates(sum), swapmm::reads(more),
                  [&](auto& op) { math.add_parts(op.queue(), sum.size(), 1, op[more], true, op[sum]); });
  }

 private:
  Manager* manager_;
  std::string name_;
  Floats value_;
  Floats velocity_;
};

}  // namespace neural
