// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>

#include <swapmm/swapmm.hpp>

#include "transformer/learned.hpp"
#include "transformer/shapes.hpp"

namespace transformer {

/// softmax(queries * keys^T / sqrt(head width)) * values, head by head. Each function is one unit operation.
template <class Math>
class Attention {
 public:
  using Numbers = NumbersOf<Math>;

  Attention(const Part<Math>& part, const Settings& settings) : part_(part), s_(settings) {}

  /// From the queries, keys and values of each row.
  [[nodiscard]] Made<Math> probabilities(const Numbers& qkv) const {
    Made<Math> made = part_.made(scores_shape(), "probabilities");
    const std::size_t work = most_work(&AttentionProducts::scores);
    swapmm::Bundle<typename Math::Backend> bundle;
    bundle.reads(qkv).writes(*made).scratch(swapmm::Bytes{work});
    part_.forward("probabilities", bundle, [this, work, &qkv, &scores = *made](auto& op) {
      for_each_sequence([&](const AttentionProducts& p) {
        part_.math->product(op.queue(), p.scores(), op[qkv], op[qkv], op[scores], area_of<Math>(op, work));
      });
      part_.math->softmax(op.queue(), score_rows(), s_.sequence, op[scores]);
    });
    return made;
  }

  [[nodiscard]] Made<Math> context(const Numbers& qkv, const Numbers& probabilities) const {
    Made<Math> made = part_.made({s_.rows(), s_.width}, "out");
    const std::size_t work = most_work(&AttentionProducts::context);
    swapmm::Bundle<typename Math::Backend> bundle;
    bundle.reads(qkv, probabilities).writes(*made).scratch(swapmm::Bytes{work});
    part_.forward("context", bundle, [this, work, &qkv, &probabilities, &out = *made](auto& op) {
      for_each_sequence([&](const AttentionProducts& p) {
        part_.math->product(op.queue(), p.context(), op[probabilities], op[qkv], op[out], area_of<Math>(op, work));
      });
    });
    return made;
  }

  /// The gradient of the scores, before the softmax.
  [[nodiscard]] Numbers scores_backward(const Numbers& qkv, const Numbers& probabilities,
                                        const Numbers& out_gradient) const {
    Numbers gradient = part_.transient(scores_shape(), "scores.gradient");
    const std::size_t work = most_work(&AttentionProducts::scores_back);
    part_.manager->run(part_.name + ".scores.backward", swapmm::reads(qkv, probabilities, out_gradient),
                       swapmm::writes(gradient), swapmm::scratch(work), [&](auto& op) {
                         for_each_sequence([&](const AttentionProducts& p) {
                           part_.math->product(op.queue(), p.scores_back(), op[out_gradient], op[qkv], op[gradient],
                                               area_of<Math>(op, work));
                         });
                         part_.math->softmax_backward(op.queue(), score_rows(), s_.sequence, op[probabilities],
                                                      op[gradient]);
                       });
    return gradient;
  }

  /// The gradient of queries, keys and values.
  [[nodiscard]] Numbers qkv_backward(const Numbers& qkv, const Numbers& probabilities, const Numbers& scores_gradient,
                                     const Numbers& out_gradient) const {
    Numbers gradient = part_.transient({s_.rows(), 3 * s_.width}, "in.gradient");
    const std::size_t work =
        std::max({most_work(&AttentionProducts::values_back), most_work(&AttentionProducts::queries_back),
                  most_work(&AttentionProducts::keys_back)});
    part_.manager->run(
        part_.name + ".backward", swapmm::reads(qkv, probabilities, scores_gradient, out_gradient),
        swapmm::writes(gradient), swapmm::scratch(work), [&](auto& op) {
          const auto area = area_of<Math>(op, work);
          for_each_sequence([&](const AttentionProducts& p) {
            part_.math->product(op.queue(), p.values_back(), op[probabilities], op[out_gradient], op[gradient], area);
            part_.math->product(op.queue(), p.queries_back(), op[scores_gradient], op[qkv], op[gradient], area);
            part_.math->product(op.queue(), p.keys_back(), op[scores_gradient], op[qkv], op[gradient], area);
          });
        });
    return gradient;
  }

 private:
  [[nodiscard]] swapmm::Shape scores_shape() const { return {s_.batch, s_.heads, s_.sequence, s_.sequence}; }
  [[nodiscard]] std::size_t score_rows() const { return s_.batch * s_.heads * s_.sequence; }

  template <class Queue>
  void for_each_sequence(Queue&& queue) const {
    for (std::size_t i = 0; i < s_.batch; ++i) queue(AttentionProducts(s_, i));
  }
  // A library may choose by size and alignment: each sequence's product may be another case.
  [[nodiscard]] std::size_t most_work(Product (AttentionProducts::*product)() const) const {
    std::size_t most = 0;
    for_each_sequence(
        [&](const AttentionProducts& p) { most = std::max(most, part_.math->product_work((p.*product)())); });
    return most;
  }

  Part<Math> part_;
  Settings s_;
};

}  // namespace transformer
