// SPDX-License-Identifier: Apache-2.0
#pragma once

// A recurrent network that learns Fashion-MNIST read row by row, through swapmm, on any backend that `Math` knows: an
// LSTM reads 28 rows of 28 numbers, one after the other, and a dense layer tells from its last output what the picture
// shows.
//
// The backward pass goes through the steps in reverse order, so what the first steps made is needed longest: that is
// swapmm's to move. All tensors but weights and inputs are made inside the iteration and end at their last use.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/swapmm.hpp>

#include "neural/loss.hpp"
#include "neural/parameter.hpp"
#include "neural/random.hpp"
#include "neural/shapes.hpp"
#include "neural/steps.hpp"
#include "sequence/cell.hpp"

namespace sequence {

inline constexpr std::size_t steps = 28;    ///< rows of a picture
inline constexpr std::size_t columns = 28;  ///< numbers of a row
/// Numbers that a step reads: a row, filled up with zeros. Products of whole multiples of 32 are several times as fast
/// on some devices.
inline constexpr std::size_t filled_columns = 32;
inline constexpr std::size_t classes = 10;

struct Settings {
  std::size_t batch = 256;
  std::size_t hidden = 128;
  std::uint32_t seed = 1;  ///< of the first weights
  float momentum = 0.9F;
};

/// `Math` is a class like neural::OpenclMath. It, the manager and the network are for one thread; the first two outlive
/// the network.
template <class Math>
class Recurrent {
 public:
  using Backend = typename Math::Backend;
  using Manager = swapmm::MemoryManager<Backend>;

  /// Makes the parameters, from the seed alone.
  Recurrent(Math& math, Manager& manager, const Settings& settings)
      : Recurrent(math, manager, settings, std::mt19937(settings.seed)) {}

  /// One step of training: iteration "train". A whole batch: images of 784 numbers, labels from 0 to 9. Returns before
  /// the device has done it.
  void train(std::span<const float> images, std::span<const std::uint8_t> labels, float rate) {
    if (labels.size() != settings_.batch) throw std::invalid_argument("train() takes a whole batch");
    const auto iteration = manager_.iteration("train");
    upload(images, labels);

    // Entry t of cells and outs is what step t finds, so there is one more than there are steps.
    std::vector<Floats> gates;
    std::vector<Floats> cells;
    std::vector<Floats> outs;
    cells.push_back(cell_.zeros("cells.begin"));
    outs.push_back(cell_.zeros("out.begin"));
    for (std::size_t t = 0; t < steps; ++t) {
      auto step = cell_.forward(t, rows_[t], cells.back(), outs.back());
      gates.push_back(std::move(step.gates));
      cells.push_back(std::move(step.cells));
      outs.push_back(std::move(step.out));
    }

    Floats out_gradient = learn_answers(outs.back(), rate);
    Floats cells_gradient = cell_.zeros("cells.gradient");
    const Floats transposed = cell_.transposed_weights();
    const auto sum = cell_.new_gradients();
    for (std::size_t t = steps; t-- > 0;) {
      outs.pop_back();  // what the step itself said was last read one step later
      out_gradient = cell_.backward(t, t + 1 == steps, {rows_[t], outs[t], cells[t], cells[t + 1]}, gates[t],
                                    out_gradient, cells_gradient, transposed, sum);
      gates.pop_back();
      cells.pop_back();
    }
    cell_.learn(sum, rate, settings_.momentum);
    loss_.added(settings_.batch);
  }

  /// The mean loss per image of all steps since the last call, 0 where there were none. Waits for the device.
  [[nodiscard]] float take_loss() { return loss_.take(); }

  /// How many of these images, a batch at most, the network says the label of: iteration "evaluate". Waits for the
  /// device.
  [[nodiscard]] std::size_t count_right(std::span<const float> images, std::span<const std::uint8_t> labels) {
    if (labels.empty() || labels.size() > settings_.batch) {
      throw std::invalid_argument("count_right() takes up to a batch");
    }
    const auto iteration = manager_.iteration("evaluate");
    upload(images, labels);
    Floats cells = cell_.zeros("cells.begin");
    Floats out = cell_.zeros("out.begin");
    for (std::size_t t = 0; t < steps; ++t) {
      auto step = cell_.forward(t, rows_[t], cells, out);
      cells = std::move(step.cells);
      out = std::move(step.out);
    }
    const Floats logits = answers(out);
    manager_.run("count", swapmm::reads(logits, labels_), swapmm::writes(right_), swapmm::scratch(count_bytes()),
                 [&](auto& op) {
                   const Place each(op.scratch());
                   math_.right_answers(op.queue(), settings_.batch, classes, op[logits], op[labels_], each);
                   math_.add_counts(op.queue(), labels.size(), each, false, op[right_]);  // not of what fills up
                 });
    return static_cast<std::size_t>(right_.download().front());
  }

  /// All parameters, in a fixed order. Waits for the device.
  [[nodiscard]] std::vector<float> weights() const {
    std::vector<float> all;
    auto parameters = cell_.parameters();
    parameters.insert(parameters.end(), {&weights_, &bias_});
    for (const auto* parameter : parameters) {
      const std::vector<float> values = parameter->value().download();
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  }

  [[nodiscard]] const Settings& settings() const { return settings_; }

 private:
  using Floats = swapmm::Tensor<float, Backend>;
  using Labels = swapmm::Tensor<std::uint8_t, Backend>;
  using Counts = swapmm::Tensor<std::int64_t, Backend>;
  using Place = typename Math::Place;

  Recurrent(Math& math, Manager& manager, const Settings& settings, std::mt19937&& random)
      : math_(math),
        manager_(manager),
        settings_(settings),
        cell_(math, manager, {.rows = settings.batch, .columns = filled_columns, .hidden = settings.hidden}, random),
        weights_(manager, {settings.hidden, classes}, "dense.weights",
                 neural::he_values(settings.hidden * classes, 2 * settings.hidden, random)),
        bias_(manager, {classes}, "dense.bias", std::vector<float>(classes)),
        dense_{.images = settings.batch, .in = settings.hidden, .out = classes},
        labels_(manager.template tensor<std::uint8_t>({settings.batch}, "labels")),
        loss_(manager),
        right_(manager.template tensor<std::int64_t>({1}, "right answers", swapmm::transient)) {
    for (std::size_t t = 0; t < steps; ++t) {
      rows_.push_back(manager.template tensor<float>({settings.batch, filled_columns}, "rows." + std::to_string(t)));
    }
  }

  // Row t of all images is what step t reads. A batch may be smaller than it should be: what is left is filled up.
  void upload(std::span<const float> images, std::span<const std::uint8_t> labels) {
    if (images.size() != labels.size() * steps * columns) throw std::invalid_argument("not as many images as labels");
    std::vector<float> rows(settings_.batch * filled_columns);
    for (std::size_t t = 0; t < steps; ++t) {
      for (std::size_t image = 0; image < labels.size(); ++image) {
        const auto row = images.subspan((image * steps + t) * columns, columns);
        std::copy(row.begin(), row.end(), rows.begin() + static_cast<std::ptrdiff_t>(image * filled_columns));
      }
      rows_[t].upload(rows);
    }
    std::vector<std::uint8_t> all(labels.begin(), labels.end());
    all.resize(settings_.batch);
    labels_.upload(all);
  }

  [[nodiscard]] std::size_t count_bytes() const { return settings_.batch * sizeof(std::int64_t); }

  // From the last output to a number per class.
  [[nodiscard]] Floats answers(const Floats& out) {
    Floats logits = manager_.template tensor<float>({settings_.batch, classes}, "logits", swapmm::transient);
    const neural::WorkArea work = neural::forward_work(math_, dense_);
    manager_.run("dense.forward", swapmm::reads(out, weights_.value(), bias_.value()), swapmm::writes(logits),
                 swapmm::scratch(work.bytes()), [&](auto& op) {
                   const Place area = work.bytes() == 0 ? Place() : Place(op.scratch());
                   neural::convolve(math_, op.queue(), dense_, false, op[out], op[weights_.value()], op[bias_.value()],
                                    op[logits], work, area);
                 });
    return logits;
  }

  // Forward and backward through the dense layer, which learns at once. Returns the gradient of the last output.
  [[nodiscard]] Floats learn_answers(const Floats& out, float rate) {
    const Floats gradient = loss(answers(out));
    const Floats of_weights = weights_.new_gradient();
    const Floats of_bias = bias_.new_gradient();
    Floats of_out = manager_.template tensor<float>(out.shape(), out.name() + ".gradient", swapmm::transient);
    const neural::WorkArea of_weights_work = neural::weights_work(math_, dense_);
    const neural::WorkArea of_out_work = neural::input_work(math_, dense_);
    manager_.run("dense.weights.backward", swapmm::reads(out, gradient), swapmm::writes(of_weights, of_bias),
                 swapmm::scratch(of_weights_work.bytes()), [&](auto& op) {
                   neural::convolve_weights_backward(math_, op.queue(), dense_, false, op[out], op[gradient],
                                                     op[of_weights], op[of_bias], of_weights_work, op.scratch());
                 });
    manager_.run("dense.input.backward", swapmm::reads(gradient, weights_.value()), swapmm::writes(of_out),
                 swapmm::scratch(of_out_work.bytes()), [&](auto& op) {
                   neural::convolve_input_backward(math_, op.queue(), dense_, op[gradient], op[weights_.value()],
                                                   op[of_out], of_out_work, op.scratch());
                 });
    weights_.learn(math_, of_weights, rate, settings_.momentum);
    bias_.learn(math_, of_bias, rate, settings_.momentum);
    return of_out;
  }

  // Adds up the loss. Returns the gradient of the logits.
  [[nodiscard]] Floats loss(const Floats& logits) {
    Floats gradient = manager_.template tensor<float>(logits.shape(), "logits.gradient", swapmm::transient);
    manager_.run("loss", swapmm::reads(logits, labels_), swapmm::writes(gradient), swapmm::updates(loss_.tensor()),
                 swapmm::scratch(count_bytes()), [&](auto& op) {
                   const Place losses(op.scratch());
                   math_.softmax_loss(op.queue(), settings_.batch, classes, 1 / static_cast<float>(settings_.batch),
                                      op[logits], op[labels_], op[gradient], losses);
                   math_.add_counts(op.queue(), settings_.batch, losses, true, op[loss_.tensor()]);
                 });
    return gradient;
  }

  Math& math_;
  Manager& manager_;
  Settings settings_;
  Cell<Math> cell_;
  neural::Parameter<Math> weights_;  // of the dense layer
  neural::Parameter<Math> bias_;
  neural::Convolution dense_;
  std::vector<Floats> rows_;
  Labels labels_;
  neural::LossSum<Backend> loss_;
  Counts right_;  // of one evaluation
};

}  // namespace sequence
