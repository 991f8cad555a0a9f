// SPDX-License-Identifier: Apache-2.0
#pragma once

// A convolutional network that learns Fashion-MNIST through swapmm, on any backend that `Math` knows.
//
// Activations are tensors made inside the iteration, one per part of the batch, and each ends at its last use: in the
// forward pass what the backward pass will not read, in the backward pass the rest, as soon as it has been read. (With
// Settings::replayable they live until the iteration ends, and their values are dead behind their last use.) No
// operation needs more than two large ones at a time (besides weights and work areas), and all together are many times
// that: what is not needed for a while is swapmm's to move.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/split.hpp>
#include <swapmm/swapmm.hpp>

#include "fashion_mnist/architecture.hpp"
#include "fashion_mnist/layer.hpp"
#include "neural/loss.hpp"

namespace fashion {

/// `Math` is a class like neural::OpenclMath. It, the manager and the network are for one thread; the first two outlive
/// the network. Names tell what tensors are: "conv1.weights", "conv1.weights.momentum", "conv1.weights.gradient",
/// "conv1.out.2" (of part 2), "conv1.out.2.gradient", "conv3.pooled.2", "conv3.map.2", "images.2", "labels.2", "loss".
template <class Math>
class Network {
 public:
  using Backend = typename Math::Backend;
  using Manager = swapmm::MemoryManager<Backend>;

  /// Makes the parameters, from the seed alone. Throws std::invalid_argument for settings that make no sense.
  Network(Math& math, Manager& manager, const Settings& settings)
      : math_(math),
        manager_(manager),
        settings_(settings),
        loss_(manager),
        right_(manager.template tensor<std::int64_t>({1}, "right answers", swapmm::transient)) {
    const std::vector<Layer> all = architecture(settings);
    const auto first = first_weights(all, settings.seed);
    for (std::size_t i = 0; i < all.size(); ++i) layers_.emplace_back(math, manager, all[i], first[i]);
    inputs_ = new_inputs(settings.evaluated(), swapmm::persistent);
  }

  /// One step: iteration "train". A whole batch: images of 784 numbers, labels from 0 to 9. Returns before the device
  /// has done it. Needs settings without pieces.
  void train(std::span<const float> images, std::span<const std::uint8_t> labels, float rate) {
    if (labels.size() != settings_.batch || settings_.pieces != 1) {
      throw std::invalid_argument("train() takes a whole batch");
    }
    std::vector<std::shared_ptr<const void>> made;  // what lives until the iteration ends
    const auto iteration = manager_.iteration("train");
    upload(inputs_, images, labels);
    Activations kept = forward(inputs_, settings_.replayable ? &made : nullptr);
    Parts gradients = loss(kept);
    for (std::size_t i = layers_.size(); i-- > 0;) {
      const WeightsGradients sums = new_gradients(i);
      gradients = backward(i, kept, std::move(gradients), sums, false);
      learn(i, sums, rate);
    }
    loss_.added(settings_.batch);
  }

  /// The same, with the batch divided into pieces: gradients are added up over all pieces, and then all weights learn.
  void train(swapmm::Split<Backend>& split, std::span<const float> images, std::span<const std::uint8_t> labels,
             float rate) {
    if (labels.size() != settings_.batch) throw std::invalid_argument("train() takes a whole batch");
    if (settings_.replayable) throw std::invalid_argument("operations run again in steps of a whole batch alone");
    std::vector<WeightsGradients> sums;
    split.step([&] { sums = new_gradients(); },
               [&](const swapmm::Piece& piece) {
                 train_piece(piece.number > 0, images.subspan(piece.first * pixels, piece.samples * pixels),
                             labels.subspan(piece.first, piece.samples), sums);
               },
               [&] {
                 for (std::size_t i = layers_.size(); i-- > 0;) learn(i, sums[i], rate);
                 sums.clear();  // before the iteration ends
               });
    loss_.added(settings_.batch);
  }

  /// A replica's part of a step (swapmm::Replicas), one of Settings::pieces pieces of the batch: queues both passes,
  /// and calls `done(weights_gradient, bias_gradient)` for each layer, from the last one on. Within an iteration.
  template <class Done>
  void train_part(std::span<const float> images, std::span<const std::uint8_t> labels, Done&& done) {
    gradients_ = new_gradients();
    train_piece(false, images, labels, gradients_, done);
    loss_.added(labels.size());
  }
  /// Learns a layer, counted from the last one on, from sums that the host has. After the first layer no gradient of
  /// train_part() is left.
  void learn_sums(std::size_t from_last, std::span<const float> weights, std::span<const float> bias, float rate) {
    const std::size_t layer = layers_.size() - 1 - from_last;
    layers_[layer].learn(weights, bias, rate, settings_.momentum);
    if (layer == 0) gradients_.clear();
  }
  /// The step of all replicas on this device: the parts one after the other, and their gradients added up on the device
  /// in the same order.
  void train_in_turn(std::span<const float> images, std::span<const std::uint8_t> labels, float rate) {
    const auto iteration = manager_.iteration("train");
    std::vector<std::vector<WeightsGradients>> parts;
    std::size_t first = 0;
    for (const std::uint64_t size : swapmm::piece_sizes(labels.size(), settings_.pieces)) {
      const auto samples = static_cast<std::size_t>(size);
      parts.push_back(new_gradients());
      train_piece(false, images.subspan(first * pixels, samples * pixels), labels.subspan(first, samples),
                  parts.back());
      first += samples;
    }
    for (std::size_t i = layers_.size(); i-- > 0;) {
      for (std::size_t part = 1; part < parts.size(); ++part) {
        layers_[i].weights().add(math_, parts[0][i].weights, parts[part][i].weights);
        layers_[i].bias().add(math_, parts[0][i].bias, parts[part][i].bias);
      }
      learn(i, parts[0][i], rate);
    }
    loss_.added(labels.size());
  }

  /// Number of layers.
  [[nodiscard]] std::size_t layers() const { return layers_.size(); }

  /// The mean loss per image of all steps since the last call, 0 where there were none. Waits for the device.
  [[nodiscard]] float take_loss() { return loss_.take(); }
  /// The loss of all images so far, in units of neural::loss_unit, whatever was taken before. Waits for the device.
  [[nodiscard]] std::int64_t total_loss() const { return loss_.total(); }

  /// How many of these images, Settings::evaluated() at most, the network says the label of: iteration "evaluate".
  /// Waits for the device.
  [[nodiscard]] std::size_t count_right(std::span<const float> images, std::span<const std::uint8_t> labels) {
    if (labels.empty() || labels.size() > settings_.evaluated()) {
      throw std::invalid_argument("count_right() takes up to a batch, or a piece of it");
    }
    const auto iteration = manager_.iteration("evaluate");
    upload(inputs_, images, labels);
    for (std::size_t part = 0; part < settings_.parts; ++part) {
      Value x;
      for (Operations& layer : layers_) {
        x = layer.forward(part, x ? *x : inputs_.images[part]);
        if (layer.layer().pool) x = std::make_shared<const Floats>(std::move(layer.pool(part, *x)->out));
      }
      count_right(part, *x, labels.size());
    }
    return static_cast<std::size_t>(right_.download().front());
  }

  /// All parameters: of each layer the weights, then the bias. Waits for the device.
  [[nodiscard]] std::vector<float> weights() const {
    std::vector<float> all;
    for (const Operations& layer : layers_) {
      for (const auto* parameter : {&layer.weights(), &layer.bias()}) {
        const std::vector<float> values = parameter->value().download();
        all.insert(all.end(), values.begin(), values.end());
      }
    }
    return all;
  }

  /// Takes the place of all parameters, in the order of weights(); momenta begin at 0 again.
  void set_weights(std::span<const float> all) {
    std::size_t size = 0;
    for (const Operations& layer : layers_) size += layer.weights().value().size() + layer.bias().value().size();
    if (all.size() != size) throw std::invalid_argument("set_weights() takes " + std::to_string(size) + " numbers");
    for (Operations& layer : layers_) {
      for (auto* parameter : {&layer.weights(), &layer.bias()}) {
        parameter->set(all.first(parameter->value().size()));
        all = all.subspan(parameter->value().size());
      }
    }
  }

  struct Memory {
    swapmm::Bytes parameters;  ///< weights, biases and their momenta
    swapmm::Bytes inputs;      ///< images and labels of a batch
  };
  [[nodiscard]] Memory memory() const {
    Memory sum;
    for (const Operations& layer : layers_) {
      for (const auto* parameter : {&layer.weights(), &layer.bias()}) {
        sum.parameters += parameter->value().bytes() + parameter->value().bytes();  // and its momentum
      }
    }
    for (const Floats& part : inputs_.images) sum.inputs += part.bytes();
    for (const Labels& part : inputs_.labels) sum.inputs += part.bytes();
    return sum;
  }
  [[nodiscard]] const Settings& settings() const { return settings_; }

 private:
  using Operations = LayerOperations<Math>;
  using Floats = typename Operations::Floats;
  using Labels = swapmm::Tensor<std::uint8_t, Backend>;
  using Value = std::shared_ptr<const Floats>;
  using Parts = std::vector<Value>;
  using Pooled = std::shared_ptr<const typename Operations::Pooled>;

  static constexpr std::size_t pixels = 784;

  // Images and labels, part by part.
  struct Inputs {
    std::vector<Floats> images;
    std::vector<Labels> labels;
    [[nodiscard]] std::size_t parts() const { return labels.size(); }
  };

  // What the backward pass reads: per layer its input, part by part, but for the first layer's, which are the images;
  // and what its pool made, whose output is the next layer's input.
  struct Activations {
    const Inputs* from = nullptr;
    std::vector<Parts> inputs;
    std::vector<std::vector<Pooled>> pooled;
    Parts logits;
  };

  // Of one layer.
  struct WeightsGradients {
    Floats weights;
    Floats bias;
  };
  [[nodiscard]] WeightsGradients new_gradients(std::size_t layer) {
    return {layers_[layer].weights().new_gradient(), layers_[layer].bias().new_gradient()};
  }
  [[nodiscard]] std::vector<WeightsGradients> new_gradients() {
    std::vector<WeightsGradients> all;
    for (std::size_t i = 0; i < layers_.size(); ++i) all.push_back(new_gradients(i));
    return all;
  }

  [[nodiscard]] static const Floats& input(const Activations& kept, std::size_t layer, std::size_t part) {
    return layer == 0 ? kept.from->images[part] : *kept.inputs[layer][part];
  }

  // Divided as evenly as possible into as many parts as the network has, or fewer, with an image each.
  [[nodiscard]] Inputs new_inputs(std::size_t count, swapmm::Lifetime lifetime) {
    Inputs made;
    for (const std::uint64_t images : swapmm::piece_sizes(count, std::min(settings_.parts, count))) {
      const auto n = static_cast<std::size_t>(images);
      const std::string number = std::to_string(made.parts());
      made.images.push_back(manager_.template tensor<float>({n, 28, 28, 1}, "images." + number, lifetime));
      made.labels.push_back(manager_.template tensor<std::uint8_t>({n}, "labels." + number, lifetime));
    }
    return made;
  }

  // There may be fewer images than there is room for: what is left is filled up.
  void upload(Inputs& inputs, std::span<const float> images, std::span<const std::uint8_t> labels) {
    if (images.size() != labels.size() * pixels) throw std::invalid_argument("not as many images as labels");
    std::size_t next = 0;
    for (std::size_t part = 0; part < inputs.parts(); ++part) {
      const std::size_t n = inputs.labels[part].size();
      const std::size_t first = std::min(next, labels.size());
      const std::size_t count = std::min(n, labels.size() - first);
      next += n;
      if (count == n) {
        inputs.images[part].upload(images.subspan(first * pixels, n * pixels));
        inputs.labels[part].upload(labels.subspan(first, n));
      } else {
        std::vector<float> some(images.begin() + static_cast<std::ptrdiff_t>(first * pixels), images.end());
        std::vector<std::uint8_t> their(labels.begin() + static_cast<std::ptrdiff_t>(first), labels.end());
        some.resize(n * pixels);
        their.resize(n);
        inputs.images[part].upload(some);
        inputs.labels[part].upload(their);
      }
    }
  }

  static constexpr auto nothing_to_do = [](const Floats&, const Floats&) {};

  // Begins the gradients with a piece's share, or adds it to them if they are to `keep` what they have. Calls `done`
  // with a layer's gradients once they are queued.
  template <class Done = decltype(nothing_to_do)>
  void train_piece(bool keep, std::span<const float> images, std::span<const std::uint8_t> labels,
                   const std::vector<WeightsGradients>& sums, const Done& done = nothing_to_do) {
    Inputs inputs = new_inputs(labels.size(), swapmm::transient);
    upload(inputs, images, labels);
    Activations kept = forward(inputs);
    Parts gradients = loss(kept);
    for (std::size_t i = layers_.size(); i-- > 0;) {
      gradients = backward(i, kept, std::move(gradients), sums[i], keep);
      done(sums[i].weights, sums[i].bias);
    }
  }

  // `made`: operations may run again, and all that they make is added to it; null: they run once.
  [[nodiscard]] Activations forward(const Inputs& from, std::vector<std::shared_ptr<const void>>* made = nullptr) {
    const bool again = made != nullptr;
    Activations kept;
    kept.from = &from;
    kept.inputs.resize(layers_.size());
    kept.pooled.resize(layers_.size());
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      Parts out(from.parts());
      for (std::size_t part = 0; part < from.parts(); ++part) {
        out[part] = layers_[i].forward(part, input(kept, i, part), again);
      }
      if (again) made->insert(made->end(), out.begin(), out.end());
      if (layers_[i].layer().pool) {
        kept.pooled[i] = pool(i, out, again);
        if (again) made->insert(made->end(), kept.pooled[i].begin(), kept.pooled[i].end());
      }
      (i + 1 < layers_.size() ? kept.inputs[i + 1] : kept.logits) = std::move(out);
    }
    return kept;
  }

  // Each part becomes what the pool makes of it.
  [[nodiscard]] std::vector<Pooled> pool(std::size_t layer, Parts& out, bool again) {
    std::vector<Pooled> made(out.size());
    for (std::size_t part = 0; part < out.size(); ++part) {
      made[part] = layers_[layer].pool(part, *out[part], again);
      out[part] = out_of(made[part]);
    }
    return made;
  }
  // Lives as long as both.
  [[nodiscard]] static Value out_of(const Pooled& pooled) { return Value(pooled, &pooled->out); }

  // Adds up the loss; from logits to their gradients, part by part.
  [[nodiscard]] Parts loss(Activations& kept) {
    Parts gradients(kept.from->parts());
    for (std::size_t part = 0; part < gradients.size(); ++part) {
      const Floats& given = *kept.logits[part];
      const Labels& labels = kept.from->labels[part];
      const std::size_t n = labels.size();
      gradients[part] = std::make_shared<const Floats>(manager_.template tensor<float>(
          given.shape(), layers_.back().label("out", part) + ".gradient", swapmm::transient));
      const Floats& gradient = *gradients[part];
      manager_.run("loss." + std::to_string(part), swapmm::reads(given, labels), swapmm::writes(gradient),
                   swapmm::updates(loss_.tensor()), swapmm::scratch(n * sizeof(std::int64_t)), [&](auto& op) {
                     const typename Math::Place losses(op.scratch());
                     math_.softmax_loss(op.queue(), n, classes, 1 / static_cast<float>(settings_.batch), op[given],
                                        op[labels], op[gradient], losses);
                     math_.add_counts(op.queue(), n, losses, true, op[loss_.tensor()]);
                   });
      kept.logits[part].reset();
    }
    return gradients;
  }

  // From the gradients of the layer's output to those of its input; for the first layer there are none. Begins the
  // gradients of the weights, or adds to them if they are to `keep` what they have.
  [[nodiscard]] Parts backward(std::size_t i, Activations& kept, Parts gradients, const WeightsGradients& sums,
                               bool keep) {
    Operations& layer = layers_[i];
    if (layer.layer().pool) pool_backward(i, kept, gradients);
    Parts before(gradients.size());
    for (std::size_t part = 0; part < gradients.size(); ++part) {
      const Floats& x = input(kept, i, part);
      layer.weights_backward(part, keep || part > 0, x, *gradients[part], sums.weights, sums.bias);
      if (i == 0) {
        gradients[part].reset();
        continue;
      }
      Operations& previous = layers_[i - 1];
      const bool pooled = previous.layer().pool;
      before[part] = std::make_shared<const Floats>(layer.input_backward(
          part, *gradients[part], x.shape(), previous.label(pooled ? "pooled" : "out", part) + ".gradient"));
      gradients[part].reset();
      if (pooled) continue;  // the way back through the pool leads through the ReLU, and reads x
      previous.relu_backward(part, x, *before[part]);
      kept.inputs[i][part].reset();
    }
    return before;
  }

  // Once nothing needs the old weights.
  void learn(std::size_t layer, const WeightsGradients& gradients, float rate) {
    layers_[layer].learn(gradients.weights, gradients.bias, rate, settings_.momentum);
  }

  // Each part's gradient becomes the one of the convolution's output.
  void pool_backward(std::size_t i, Activations& kept, Parts& gradients) {
    for (std::size_t part = 0; part < gradients.size(); ++part) {
      Pooled& pooled = kept.pooled[i][part];
      gradients[part] =
          std::make_shared<const Floats>(layers_[i].pool_backward(part, pooled->out, pooled->map, *gradients[part]));
      kept.inputs[i + 1][part].reset();
      pooled.reset();
    }
  }

  void count_right(std::size_t part, const Floats& logits, std::size_t images) {
    const std::size_t n = settings_.images_per_part();
    const std::size_t first = std::min(part * n, images);
    const std::size_t count = std::min(n, images - first);
    swapmm::Bundle<Backend> bundle;
    bundle.reads(logits, inputs_.labels[part]).scratch(swapmm::Bytes{n * sizeof(std::int64_t)});
    if (part == 0) {
      bundle.writes(right_);
    } else {
      bundle.updates(right_);
    }
    manager_.run("count." + std::to_string(part), bundle, [&](auto& op) {
      const typename Math::Place right(op.scratch());
      math_.right_answers(op.queue(), n, classes, op[logits], op[inputs_.labels[part]], right);
      math_.add_counts(op.queue(), count, right, part > 0, op[right_]);  // of the images, not of what fills up
    });
  }

  Math& math_;
  Manager& manager_;
  Settings settings_;
  std::vector<Operations> layers_;
  Inputs inputs_;                            // of evaluations, and of a whole batch
  std::vector<WeightsGradients> gradients_;  // of train_part()
  neural::LossSum<Backend> loss_;
  swapmm::Tensor<std::int64_t, Backend> right_;  // of one evaluation
};

}  // namespace fashion
