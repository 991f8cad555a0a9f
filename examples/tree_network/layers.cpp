// SPDX-License-Identifier: Apache-2.0
#include "layers.hpp"

#include <algorithm>

#include "simulated_networks/products.hpp"

namespace trees {
namespace {

using networks::add_outer_product;
using networks::add_product;
using networks::add_transposed_product;

template <class T>
std::span<T> row(std::span<T> matrix, std::int64_t number) {
  return matrix.subspan(static_cast<std::size_t>(number) * width, width);
}

/// The three blocks of a convolution's weights, for a node and its children.
std::span<const float> block(ConstFloats weights, std::size_t number) {
  return weights.subspan(number * width * width, width * width);
}

/// The gradient before the rectifier.
struct Rectified {
  float values[width];
  Rectified(std::span<const float> y, std::span<const float> by_y) {
    for (std::size_t j = 0; j < width; ++j) values[j] = y[j] > 0 ? by_y[j] : 0;
  }
  operator std::span<const float>() const { return values; }  // NOLINT(google-explicit-constructor)
};

}  // namespace

void embed(Nodes nodes, ConstFloats table, Floats features) {
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    std::ranges::copy(row(table, nodes[n].symbol), row(features, static_cast<std::int64_t>(n)).begin());
  }
}

void embed_backward(Nodes nodes, ConstFloats by_features, Floats by_table) {
  std::ranges::fill(by_table, 0.0F);
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    const auto from = row(by_features, static_cast<std::int64_t>(n));
    const auto to = row(by_table, nodes[n].symbol);
    for (std::size_t j = 0; j < width; ++j) to[j] += from[j];
  }
}

void convolve(Nodes nodes, ConstFloats x, ConstFloats weights, Floats y) {
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    const auto out = row(y, static_cast<std::int64_t>(n));
    std::ranges::copy(weights.last(width), out.begin());  // the bias
    add_product(row(x, static_cast<std::int64_t>(n)), block(weights, 0), out);
    if (nodes[n].left != no_node) add_product(row(x, nodes[n].left), block(weights, 1), out);
    if (nodes[n].right != no_node) add_product(row(x, nodes[n].right), block(weights, 2), out);
    for (float& value : out) value = std::max(value, 0.0F);
  }
}

void convolve_backward_x(Nodes nodes, ConstFloats y, ConstFloats by_y, ConstFloats weights, Floats by_x) {
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    const auto number = static_cast<std::int64_t>(n);
    const auto out = row(by_x, number);
    std::ranges::fill(out, 0.0F);
    add_transposed_product(Rectified(row(y, number), row(by_y, number)), block(weights, 0), out);
    const std::int32_t parent = nodes[n].parent;
    if (parent == no_node) continue;
    const bool is_left = nodes[static_cast<std::size_t>(parent)].left == number;
    add_transposed_product(Rectified(row(y, parent), row(by_y, parent)), block(weights, is_left ? 1 : 2), out);
  }
}

void convolve_backward_weights(Nodes nodes, ConstFloats x, ConstFloats y, ConstFloats by_y, Floats by_weights) {
  std::ranges::fill(by_weights, 0.0F);
  const auto block_of = [&](std::size_t number) { return by_weights.subspan(number * width * width, width * width); };
  const auto bias = by_weights.last(width);
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    const auto number = static_cast<std::int64_t>(n);
    const Rectified by_sum(row(y, number), row(by_y, number));
    add_outer_product(row(x, number), by_sum, block_of(0));
    if (nodes[n].left != no_node) add_outer_product(row(x, nodes[n].left), by_sum, block_of(1));
    if (nodes[n].right != no_node) add_outer_product(row(x, nodes[n].right), by_sum, block_of(2));
    for (std::size_t j = 0; j < width; ++j) bias[j] += by_sum.values[j];
  }
}

void pool(std::size_t nodes, ConstFloats features, Floats largest, std::span<std::int32_t> where) {
  for (std::size_t j = 0; j < width; ++j) {
    std::size_t best = 0;
    for (std::size_t n = 1; n < nodes; ++n) {
      if (features[n * width + j] > features[best * width + j]) best = n;
    }
    largest[j] = features[best * width + j];
    where[j] = static_cast<std::int32_t>(best);
  }
}

void pool_backward(std::size_t nodes, ConstFloats by_largest, std::span<const std::int32_t> where, Floats by_features) {
  std::ranges::fill(by_features.first(nodes * width), 0.0F);
  for (std::size_t j = 0; j < width; ++j) by_features[static_cast<std::size_t>(where[j]) * width + j] = by_largest[j];
}

void judge(ConstFloats pooled, ConstFloats weights, float target, Floats error) {
  float sum = weights[width];
  for (std::size_t j = 0; j < width; ++j) sum += pooled[j] * weights[j];
  error[0] = sum - target;
}

void add_up(ConstFloats error, Floats totals) {
  totals[0] += error[0] * error[0];
  totals[1] += error[0] > -0.5F && error[0] < 0.5F ? 1.0F : 0.0F;
}

void judge_backward(ConstFloats pooled, ConstFloats weights, ConstFloats error, Floats by_pooled, Floats by_weights) {
  for (std::size_t j = 0; j < width; ++j) {
    by_pooled[j] = error[0] * weights[j];
    by_weights[j] = error[0] * pooled[j];
  }
  by_weights[width] = error[0];
}

void learn(ConstFloats gradient, Floats velocity, Floats weights) {
  for (std::size_t i = 0; i < weights.size(); ++i) {
    velocity[i] = momentum * velocity[i] + gradient[i];
    weights[i] -= learning_rate * velocity[i];
  }
}

}  // namespace trees
