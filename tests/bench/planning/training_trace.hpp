// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include <swapmm/ir/trace.hpp>

namespace swapmm::bench {

/// A training step of a chain of layers: a third of the operations goes forward and keeps two activations each for the
/// backward pass, a third goes back, a third updates the weights. About two tensors for each operation: activations,
/// weights, their gradients and moments. Sizes and durations vary from layer to layer; the same seed gives the same
/// trace. At half of the peak and 15.754 GB/s each way the copies take about as long as the computation.
[[nodiscard]] Trace training_trace(std::size_t operations, std::uint64_t seed);

}  // namespace swapmm::bench
