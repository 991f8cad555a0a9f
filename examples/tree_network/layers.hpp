// SPDX-License-Identifier: Apache-2.0
#pragma once

// The network's layers as loops over memory, forward and backward. Matrices are row-major. Each result is summed in one
// fixed order, so the same inputs give the same bits wherever the loops run.

#include <cstddef>
#include <cstdint>
#include <span>

#include "tree.hpp"

namespace trees {

inline constexpr std::size_t width = 16;            ///< features of a node
inline constexpr std::size_t rows = 3 * width + 1;  ///< of a convolution's weights: node, left child, right child, bias
inline constexpr float learning_rate = 0.02F;
inline constexpr float momentum = 0.9F;

using Floats = std::span<float>;
using ConstFloats = std::span<const float>;
using Nodes = std::span<const Node>;

/// features[node] = table[symbol of the node]
void embed(Nodes nodes, ConstFloats table, Floats features);
/// The gradient of the table.
void embed_backward(Nodes nodes, ConstFloats by_features, Floats by_table);

/// Tree-based convolution: y[node] = max(0, bias + W x[node] + W_left x[left child] + W_right x[right child]). A child
/// that there is not adds nothing.
void convolve(Nodes nodes, ConstFloats x, ConstFloats weights, Floats y);
/// From the gradient by y: the gradient by x.
void convolve_backward_x(Nodes nodes, ConstFloats y, ConstFloats by_y, ConstFloats weights, Floats by_x);
/// From the gradient by y: the gradient by the weights.
void convolve_backward_weights(Nodes nodes, ConstFloats x, ConstFloats y, ConstFloats by_y, Floats by_weights);

/// The largest value of each feature over all nodes, and the node that has it.
void pool(std::size_t nodes, ConstFloats features, Floats largest, std::span<std::int32_t> where);
/// The gradient by the features: that of the pooled value at the node that had it, else 0.
void pool_backward(std::size_t nodes, ConstFloats by_largest, std::span<const std::int32_t> where, Floats by_features);

/// error[0] = bias + weights * pooled - target
void judge(ConstFloats pooled, ConstFloats weights, float target, Floats error);
/// The squared error, and 1 if the answer is on the right side, are added to two totals.
void add_up(ConstFloats error, Floats totals);
/// The gradients of half the squared error.
void judge_backward(ConstFloats pooled, ConstFloats weights, ConstFloats error, Floats by_pooled, Floats by_weights);

/// One step of stochastic gradient descent.
void learn(ConstFloats gradient, Floats velocity, Floats weights);

}  // namespace trees
