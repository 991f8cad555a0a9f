// SPDX-License-Identifier: Apache-2.0
#include "by_loops.hpp"

#include <array>

namespace trees {

NetworkByLoops::NetworkByLoops(std::uint64_t seed) : weights_(first_weights(seed)) {
  for (const auto& weights : weights_) velocities_.emplace_back(weights.size(), 0.0F);
}

void NetworkByLoops::train(const Tree& tree) {
  const Nodes nodes = tree.nodes;
  const std::size_t features = nodes.size() * width;
  std::vector<std::vector<float>> x(convolutions + 1, std::vector<float>(features));
  embed(nodes, weights_.front(), x[0]);
  for (std::size_t i = 0; i < convolutions; ++i) convolve(nodes, x[i], weights_[i + 1], x[i + 1]);

  std::array<float, width> pooled{};
  std::array<std::int32_t, width> where{};
  std::array<float, 1> error{};
  pool(nodes.size(), x.back(), pooled, where);
  judge(pooled, weights_.back(), tree.target, error);
  add_up(error, totals_);

  std::vector<std::vector<float>> gradients;
  for (const auto& weights : weights_) gradients.emplace_back(weights.size());
  std::array<float, width> by_pooled{};
  std::vector<float> by_y(features);
  std::vector<float> by_x(features);
  judge_backward(pooled, weights_.back(), error, by_pooled, gradients.back());
  pool_backward(nodes.size(), by_pooled, where, by_y);
  for (std::size_t i = convolutions; i-- > 0;) {
    convolve_backward_weights(nodes, x[i], x[i + 1], by_y, gradients[i + 1]);
    convolve_backward_x(nodes, x[i + 1], by_y, weights_[i + 1], by_x);
    by_y.swap(by_x);
  }
  embed_backward(nodes, by_y, gradients.front());
  for (std::size_t i = 0; i < weights_.size(); ++i) learn(gradients[i], velocities_[i], weights_[i]);
}

}  // namespace trees
