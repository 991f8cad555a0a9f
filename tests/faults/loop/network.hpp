// SPDX-License-Identifier: Apache-2.0
#pragma once

// The small network that most scenarios train, on a device that holds four of its tensors.

#include <cstddef>
#include <vector>

#include "faults/world/world.hpp"

namespace swapmm::test {

inline constexpr Bytes four_tensors{1024};

/// A device budget of four tensors.
[[nodiscard]] Options small();

/// Weights that live on, activations that each iteration writes anew, and an input that the host fills.
struct Network {
  std::size_t input = 0;
  std::vector<std::size_t> weights;
  std::vector<std::size_t> activations;  // one more than weights
};

[[nodiscard]] Network make_network(World& world, std::size_t layers);

void forward(World& world, const Network& network, Element input, bool as_list = false);
void backward(World& world, const Network& network, std::size_t scratch = 0, bool as_list = false);
void train(World& world, const Network& network, Element input, std::size_t scratch = 0, bool as_list = false);

// What a program that trains it shows without a fault.
[[nodiscard]] bool followed(World& world);
[[nodiscard]] bool swapped_both_ways(World& world);
[[nodiscard]] bool followed_at_all(World& world);

}  // namespace swapmm::test
