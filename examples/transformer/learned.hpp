// SPDX-License-Identifier: Apache-2.0
#pragma once

// The parts of a block that have weights: matrices and LayerNorms. Each function is one unit operation, which declares
// what it reads and writes and queues its work through Math.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <swapmm/swapmm.hpp>

#include "transformer/shapes.hpp"

namespace transformer {

template <class Math>
using NumbersOf = swapmm::Tensor<typename Math::Number, typename Math::Backend>;
/// What an operation that may run again made: it stays where it is.
template <class Math>
using Made = std::shared_ptr<const NumbersOf<Math>>;

/// What a part needs to make tensors and run operations. Both outlive it.
template <class Math>
struct Part {
  Math* math = nullptr;
  swapmm::MemoryManager<typename Math::Backend>* manager = nullptr;
  std::string name{};  ///< of the part
  /// Operations of the forward pass may run again: what they read and make must live until the iteration ends.
  bool again = false;

  [[nodiscard]] NumbersOf<Math> transient(const swapmm::Shape& shape, std::string_view what) const {
    return manager->template tensor<typename Math::Number>(shape, name + "." + std::string(what), swapmm::transient);
  }
  [[nodiscard]] Made<Math> made(const swapmm::Shape& shape, std::string_view what) const {
    return std::make_shared<const NumbersOf<Math>>(transient(shape, what));
  }
  /// Runs an operation of the forward pass, "block3.up" + ".forward" for example.
  template <class Queue>
  void forward(std::string_view what, swapmm::Bundle<typename Math::Backend>& bundle, const Queue& queue) const {
    if (again) bundle.replayable();
    manager->run(name + "." + std::string(what), bundle, queue);
  }
};

/// The work area of an operation that may need none.
template <class Math, class Operation>
[[nodiscard]] typename Math::Area area_of(Operation& op, std::size_t bytes) {
  return bytes == 0 ? typename Math::Area() : typename Math::Area(op.scratch());
}

/// A weight, or all weights of one matrix.
template <class Math>
class Weights {
 public:
  using Numbers = NumbersOf<Math>;

  Weights(const Part<Math>& part, const swapmm::Shape& shape)
      : part_(part), value_(part.manager->template tensor<typename Math::Number>(shape, part.name)) {}

  [[nodiscard]] const Numbers& value() const { return value_; }
  [[nodiscard]] Numbers& value() { return value_; }

  /// Random numbers from -range to range around `middle`.
  void begin(std::uint32_t seed, float range, float middle) {
    part_.manager->run(part_.name + ".begin", swapmm::writes(value_), [&](auto& op) {
      part_.math->random(op.queue(), value_.size(), seed, range, middle, op[value_]);
    });
  }
  [[nodiscard]] Numbers new_gradient() const { return part_.transient(value_.shape(), "gradient"); }
  /// value -= rate * gradient
  void learn(const Numbers& gradient, float rate) {
    part_.manager->run(part_.name + ".learn", swapmm::updates(value_), swapmm::reads(gradient),
                       [&](auto& op) { part_.math->learn(op.queue(), value_.size(), rate, op[value_], op[gradient]); });
  }

 private:
  Part<Math> part_;
  Numbers value_;
};

/// y = x * weights, for `rows` rows of `in` numbers.
template <class Math>
class Dense {
 public:
  using Numbers = NumbersOf<Math>;

  Dense(const Part<Math>& part, std::size_t rows, std::size_t in, std::size_t out)
      : part_(part),
        weights_(part, {in, out}),
        rows_(rows),
        in_(in),
        out_(out),
        forward_(whole(false, false, rows, out, in)),
        weights_back_(whole(true, false, in, out, rows)),
        input_back_(whole(false, true, rows, in, out)),
        onto_(whole(false, false, rows, out, in, 1)) {}

  [[nodiscard]] Weights<Math>& weights() { return weights_; }
  [[nodiscard]] const Weights<Math>& weights() const { return weights_; }

  [[nodiscard]] Made<Math> forward(const Numbers& x) const {
    Made<Math> made = part_.made({rows_, out_}, "out");
    const std::size_t work = part_.math->product_work(forward_);
    swapmm::Bundle<typename Math::Backend> bundle;
    bundle.reads(x, weights_.value()).writes(*made).scratch(swapmm::Bytes{work});
    part_.forward("forward", bundle, [this, work, &x, &y = *made](auto& op) {
      part_.math->product(op.queue(), forward_, op[x], op[weights_.value()], op[y], area_of<Math>(op, work));
    });
    return made;
  }
  /// The same, added to `residual`.
  [[nodiscard]] Made<Math> forward_onto(const Numbers& x, const Numbers& residual) const {
    Made<Math> made = part_.made({rows_, out_}, "out");
    const std::size_t work = part_.math->product_work(onto_);
    swapmm::Bundle<typename Math::Backend> bundle;
    bundle.reads(x, weights_.value(), residual).writes(*made).scratch(swapmm::Bytes{work});
    part_.forward("forward", bundle, [this, work, &x, &residual, &y = *made](auto& op) {
      part_.math->copy(op.queue(), residual.size(), op[residual], op[y]);
      part_.math->product(op.queue(), onto_, op[x], op[weights_.value()], op[y], area_of<Math>(op, work));
    });
    return made;
  }
  /// The weights' gradient.
  [[nodiscard]] Numbers weights_backward(const Numbers& x, const Numbers& y_gradient) const {
    Numbers gradient = weights_.new_gradient();
    const std::size_t work = part_.math->product_work(weights_back_);
    part_.manager->run(part_.name + ".weights.backward", swapmm::reads(x, y_gradient), swapmm::writes(gradient),
                       swapmm::scratch(work), [&](auto& op) {
                         part_.math->product(op.queue(), weights_back_, op[x], op[y_gradient], op[gradient],
                                             area_of<Math>(op, work));
                       });
    return gradient;
  }
  /// The gradient of x.
  [[nodiscard]] Numbers input_backward(const Numbers& y_gradient) const {
    Numbers gradient = part_.transient({rows_, in_}, "in.gradient");
    const std::size_t work = part_.math->product_work(input_back_);
    part_.manager->run(part_.name + ".input.backward", swapmm::reads(y_gradient, weights_.value()),
                       swapmm::writes(gradient), swapmm::scratch(work), [&](auto& op) {
                         part_.math->product(op.queue(), input_back_, op[y_gradient], op[weights_.value()],
                                             op[gradient], area_of<Math>(op, work));
                       });
    return gradient;
  }

 private:
  Part<Math> part_;
  Weights<Math> weights_;
  std::size_t rows_;
  std::size_t in_;
  std::size_t out_;
  Product forward_;
  Product weights_back_;
  Product input_back_;
  Product onto_;
};

/// A LayerNorm over the rows of a matrix. Its weights are two rows: the scale, and the shift.
template <class Math>
class Norm {
 public:
  using Numbers = NumbersOf<Math>;
  using Statistics = swapmm::Tensor<typename Math::Sum, typename Math::Backend>;

  Norm(const Part<Math>& part, std::size_t rows, std::size_t width)
      : part_(part), weights_(part, {2, width}), rows_(rows), width_(width) {}

  [[nodiscard]] Weights<Math>& weights() { return weights_; }
  [[nodiscard]] const Weights<Math>& weights() const { return weights_; }
  /// Scale 1, shift 0.
  void begin() {
    part_.manager->run(part_.name + ".begin", swapmm::writes(weights_.value()),
                       [&](auto& op) { part_.math->norm_weights(op.queue(), width_, op[weights_.value()]); });
  }

  struct Result {
    Made<Math> out;
    std::shared_ptr<const Statistics> statistics;  ///< of each row: the mean, and 1 / deviation
  };
  [[nodiscard]] Result forward(const Numbers& x) const {
    Result made{part_.made({rows_, width_}, "out"),
                std::make_shared<const Statistics>(part_.manager->template tensor<typename Math::Sum>(
                    {rows_, 2}, part_.name + ".statistics", swapmm::transient))};
    swapmm::Bundle<typename Math::Backend> bundle;
    bundle.reads(x, weights_.value()).writes(*made.out, *made.statistics);
    part_.forward("forward", bundle, [this, &x, &y = *made.out, &statistics = *made.statistics](auto& op) {
      part_.math->layer_norm(op.queue(), rows_, width_, op[x], op[weights_.value()], op[y], op[statistics]);
    });
    return made;
  }
  /// Adds the gradient of x to `x_gradient`; returns the one of the weights.
  [[nodiscard]] Numbers backward(const Numbers& x, const Statistics& statistics, const Numbers& out_gradient,
                                 const Numbers& x_gradient) const {
    Numbers gradient = weights_.new_gradient();
    const std::size_t work = part_.math->norm_work(rows_, width_);
    part_.manager->run(part_.name + ".backward", swapmm::reads(x, statistics, weights_.value(), out_gradient),
                       swapmm::updates(x_gradient), swapmm::writes(gradient), swapmm::scratch(work), [&](auto& op) {
                         part_.math->layer_norm_backward(op.queue(), rows_, width_, op[x], op[statistics],
                                                         op[weights_.value()], op[out_gradient], op[x_gradient],
                                                         op[gradient], area_of<Math>(op, work));
                       });
    return gradient;
  }

 private:
  Part<Math> part_;
  Weights<Math> weights_;
  std::size_t rows_;
  std::size_t width_;
};

}  // namespace transformer
