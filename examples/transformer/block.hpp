// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/swapmm.hpp>

#include "transformer/attention.hpp"
#include "transformer/learned.hpp"
#include "transformer/shapes.hpp"

namespace transformer {

/// x2 = x + project(attention(qkv(norm1(x)))), y = x2 + down(gelu(up(norm2(x2)))).
template <class Math>
class Block {
 public:
  using Numbers = NumbersOf<Math>;
  using Statistics = typename Norm<Math>::Statistics;
  using Manager = swapmm::MemoryManager<typename Math::Backend>;

  /// Tensors are named "block3.up.out" and so on.
  Block(Math& math, Manager& manager, const Settings& settings, std::size_t index)
      : part_{&math, &manager, "block" + std::to_string(index), settings.replayable},
        settings_(settings),
        index_(index),
        norm1_(part("norm1"), settings.rows(), settings.width),
        qkv_(part("qkv"), settings.rows(), settings.width, 3 * settings.width),
        attention_(part("attention"), settings),
        project_(part("project"), settings.rows(), settings.width, settings.width),
        norm2_(part("norm2"), settings.rows(), settings.width),
        up_(part("up"), settings.rows(), settings.width, 4 * settings.width),
        down_(part("down"), settings.rows(), 4 * settings.width, settings.width) {}

  /// Gives all weights their first values, by operations on the device.
  void begin() {
    norm1_.begin();
    norm2_.begin();
    std::uint32_t part = 0;
    // Uniform numbers of deviation 1 / sqrt(in); what is added to the residual is smaller, by the depth of the stack.
    for (Dense<Math>* dense : {&qkv_, &up_, &project_, &down_}) {
      const bool residual = part >= 2;
      float range = std::sqrt(3.0F / static_cast<float>(dense->weights().value().shape()[0]));
      if (residual) range /= std::sqrt(2.0F * static_cast<float>(settings_.layers));
      const auto seed = settings_.seed + 1 + static_cast<std::uint32_t>(4 * index_) + part++;
      dense->weights().begin(seed, range, 0);
    }
  }

  /// What the way back reads. It lets go of each as soon as it was read.
  struct Kept {
    typename Norm<Math>::Result norm1;
    Made<Math> qkv;
    Made<Math> probabilities;
    Made<Math> context;
    Made<Math> middle;  ///< x2
    typename Norm<Math>::Result norm2;
    Made<Math> up;
    Made<Math> gelu;

    /// All of it, to be kept longer.
    [[nodiscard]] std::vector<std::shared_ptr<const void>> all() const {
      return {norm1.out, norm1.statistics, qkv, probabilities, context, middle, norm2.out, norm2.statistics, up, gelu};
    }
  };

  /// Returns y.
  [[nodiscard]] Made<Math> forward(const Numbers& x, Kept& kept) const {
    kept.norm1 = norm1_.forward(x);
    kept.qkv = qkv_.forward(*kept.norm1.out);
    kept.probabilities = attention_.probabilities(*kept.qkv);
    kept.context = attention_.context(*kept.qkv, *kept.probabilities);
    kept.middle = project_.forward_onto(*kept.context, x);
    kept.norm2 = norm2_.forward(*kept.middle);
    kept.up = up_.forward(*kept.norm2.out);
    kept.gelu = gelu(*kept.up);
    return down_.forward_onto(*kept.gelu, *kept.middle);
  }

  /// `gradient`, of y, becomes the one of x; the weights learn as soon as nothing needs the old ones.
  void backward(const Numbers& x, Kept& kept, const Numbers& gradient, float rate) {
    norm_backward(norm2_, *kept.middle, kept.norm2.statistics, feed_forward_backward(kept, gradient, rate), gradient,
                  rate);
    kept.middle.reset();
    norm_backward(norm1_, x, kept.norm1.statistics, attention_backward(kept, gradient, rate), gradient, rate);
  }

  /// Calls visit(tensor) for all weights, in the same order always.
  template <class Visit>
  void for_each_weight(Visit&& visit) {
    for (Norm<Math>* norm : {&norm1_, &norm2_}) visit(norm->weights().value());
    for (Dense<Math>* dense : {&qkv_, &project_, &up_, &down_}) visit(dense->weights().value());
  }

 private:
  [[nodiscard]] Part<Math> part(const std::string& name) const {
    return {part_.math, part_.manager, part_.name + "." + name, part_.again};
  }

  [[nodiscard]] Made<Math> gelu(const Numbers& x) const {
    Made<Math> made = part_.made(x.shape(), "gelu.out");
    swapmm::Bundle<typename Math::Backend> bundle;
    bundle.reads(x).writes(*made);
    part_.forward("gelu", bundle,
                  [this, &x, &y = *made](auto& op) { part_.math->gelu(op.queue(), x.size(), op[x], op[y]); });
    return made;
  }

  // Each of these gives the gradient of what its part begins with.

  [[nodiscard]] Numbers feed_forward_backward(Kept& kept, const Numbers& gradient, float rate) {
    const Numbers inside = dense_backward(down_, kept.gelu, gradient, rate);
    part_.manager->run(part_.name + ".gelu.backward", swapmm::reads(*kept.up), swapmm::updates(inside), [&](auto& op) {
      part_.math->gelu_backward(op.queue(), inside.size(), op[*kept.up], op[inside]);
    });
    kept.up.reset();
    return dense_backward(up_, kept.norm2.out, inside, rate);
  }

  [[nodiscard]] Numbers attention_backward(Kept& kept, const Numbers& gradient, float rate) {
    const Numbers inside = qkv_backward(kept, dense_backward(project_, kept.context, gradient, rate));
    return dense_backward(qkv_, kept.norm1.out, inside, rate);
  }
  [[nodiscard]] Numbers qkv_backward(Kept& kept, const Numbers& context_gradient) const {
    const Numbers scores = attention_.scores_backward(*kept.qkv, *kept.probabilities, context_gradient);
    Numbers gradient = attention_.qkv_backward(*kept.qkv, *kept.probabilities, scores, context_gradient);
    kept.qkv.reset();
    kept.probabilities.reset();
    return gradient;
  }

  // x ends, and the weights learn.
  [[nodiscard]] static Numbers dense_backward(Dense<Math>& dense, Made<Math>& x, const Numbers& y_gradient,
                                              float rate) {
    const Numbers learns = dense.weights_backward(*x, y_gradient);
    x.reset();
    Numbers gradient = dense.input_backward(y_gradient);
    dense.weights().learn(learns, rate);
    return gradient;
  }
  // Adds what goes around the part as a residual, too.
  static void norm_backward(Norm<Math>& norm, const Numbers& x, std::shared_ptr<const Statistics>& statistics,
                            const Numbers& out_gradient, const Numbers& gradient, float rate) {
    const Numbers learns = norm.backward(x, *statistics, out_gradient, gradient);
    statistics.reset();
    norm.weights().learn(learns, rate);
  }

  Part<Math> part_;
  Settings settings_;
  std::size_t index_;
  Norm<Math> norm1_;
  Dense<Math> qkv_;
  Attention<Math> attention_;
  Dense<Math> project_;
  Norm<Math> norm2_;
  Dense<Math> up_;
  Dense<Math> down_;
};

}  // namespace transformer
