// SPDX-License-Identifier: Apache-2.0
#pragma once

// A stack of transformer blocks that learns to give zeros, through swapmm, on any backend that `Math` knows: what is
// measured is the work, not what it is good for. Activations are tensors made inside the iteration; each ends at its
// last use. (With Settings::replayable they live until the iteration ends, and their values are dead behind their last
// use.)

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <swapmm/swapmm.hpp>

#include "transformer/block.hpp"
#include "transformer/learned.hpp"
#include "transformer/shapes.hpp"

namespace transformer {

/// A rate at which stacks of any width learn: from about 0.5 on, the loss of six layers grows.
inline constexpr float usual_rate = 0.1F;

/// `Math` has
/// - types: Backend; Number, of weights and activations; Sum, of statistics; Area, made from op.scratch() or from
/// nothing;
/// - the functions of tests/transformer/host_math.hpp, which says what each computes.
/// It and the manager outlive the network; all are for one thread.
template <class Math>
class Network {
 public:
  using Backend = typename Math::Backend;
  using Manager = swapmm::MemoryManager<Backend>;
  using Numbers = NumbersOf<Math>;

  /// Makes weights and input, from the seed alone. Throws std::invalid_argument for settings that make no sense.
  Network(Math& math, Manager& manager, const Settings& settings)
      : math_(math),
        manager_(manager),
        settings_((check(settings), settings)),
        input_(manager.template tensor<typename Math::Number>({settings.rows(), settings.width}, "input")),
        loss_(manager.template tensor<double>({1}, "loss")),
        digest_(manager.template tensor<std::uint64_t>({1}, "digest")) {
    for (std::size_t i = 0; i < settings.layers; ++i) blocks_.emplace_back(math, manager, settings, i);
    loss_.upload(std::vector<double>{0});
    begin();
  }

  /// Weights and input are as in the beginning.
  void begin() {
    manager_.run("input.begin", swapmm::writes(input_), [&](auto& op) {
      math_.random(op.queue(), input_.size(), settings_.seed, 1.7320508F, 0, op[input_]);  // deviation 1
    });
    for (Block<Math>& block : blocks_) block.begin();
  }

  /// One step: iteration "train". Returns before the device has done it.
  void train(float rate) {
    // What operations made that may run again lives until the iteration ends, even if one of them fails.
    std::vector<std::shared_ptr<const void>> made;
    std::vector<typename Block<Math>::Kept> kept(blocks_.size());
    std::vector<Made<Math>> outs;  // of each block but the last
    const auto iteration = manager_.iteration("train");
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      outs.push_back(blocks_[i].forward(input(outs, i), kept[i]));
      if (!settings_.replayable) continue;
      made.push_back(outs.back());
      for (auto& one : kept[i].all()) made.push_back(std::move(one));
    }
    const Numbers gradient = loss(*outs.back());
    outs.pop_back();
    for (std::size_t i = blocks_.size(); i-- > 0;) {
      blocks_[i].backward(input(outs, i), kept[i], gradient, rate);
      if (i > 0) outs.pop_back();
    }
  }

  /// Of the last step: the mean square of the outputs. Waits for the device.
  [[nodiscard]] double last_loss() const { return loss_.download().front(); }

  /// 64 bits that depend on every bit of all weights. Waits for the device.
  [[nodiscard]] std::uint64_t digest() {
    digest_.upload(std::vector<std::uint64_t>{0});
    std::uint64_t salt = 0;
    for_each_weight([&](const Numbers& weights) {
      ++salt;
      manager_.run("digest", swapmm::reads(weights), swapmm::updates(digest_),
                   [&](auto& op) { math_.digest(op.queue(), weights.size(), salt, op[weights], op[digest_]); });
    });
    return digest_.download().front();
  }

  /// Calls visit(tensor) for all weights, block by block.
  template <class Visit>
  void for_each_weight(Visit&& visit) {
    for (Block<Math>& block : blocks_) block.for_each_weight(visit);
  }
  [[nodiscard]] const Settings& settings() const { return settings_; }

 private:
  [[nodiscard]] const Numbers& input(const std::vector<Made<Math>>& outs, std::size_t block) const {
    return block == 0 ? input_ : *outs[block - 1];
  }

  // The gradient of the outputs.
  [[nodiscard]] Numbers loss(const Numbers& out) {
    Numbers gradient = manager_.template tensor<typename Math::Number>(out.shape(), "out.gradient", swapmm::transient);
    const std::size_t work = math_.mean_square_work(out.size());
    // The sum is overwritten, and yet an update: a value that every iteration writes first would have to be saved from
    // it.
    manager_.run("loss", swapmm::reads(out), swapmm::writes(gradient), swapmm::updates(loss_), swapmm::scratch(work),
                 [&](auto& op) {
                   math_.mean_square(op.queue(), out.size(), op[out], op[gradient], op[loss_], area_of<Math>(op, work));
                 });
    return gradient;
  }

  Math& math_;
  Manager& manager_;
  Settings settings_;
  std::vector<Block<Math>> blocks_;
  Numbers input_;
  swapmm::Tensor<double, Backend> loss_;
  swapmm::Tensor<std::uint64_t, Backend> digest_;
};

}  // namespace transformer
