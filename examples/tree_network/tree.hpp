// SPDX-License-Identifier: Apache-2.0
#pragma once

// Expression trees such as (a + 3) * b, without pointers and without recursion: a tree may be as deep as it has nodes.

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace trees {

/// What a node is. The first two are leaves.
enum class Symbol : std::uint8_t { variable, constant, sum, difference, product, quotient };
inline constexpr std::size_t symbol_count = 6;

inline constexpr std::int32_t no_node = -1;

/// A node of a tree. Children come before their parents, so the root is the last node.
struct Node {
  std::int32_t symbol = 0;
  std::int32_t left = no_node;   ///< child; none for a leaf
  std::int32_t right = no_node;  ///< child; none for a leaf
  std::int32_t parent = no_node;
};

struct Tree {
  std::vector<Node> nodes;
  float target = 0;  ///< what the network learns
};

/// A tree of random shape with so many leaves, at least 1, and 2 * leaves - 1 nodes.
[[nodiscard]] Tree random_tree(std::mt19937_64& random, std::size_t leaves);

/// A tree that is as deep as it can be: each operator has a leaf on its right.
[[nodiscard]] Tree chain_tree(std::mt19937_64& random, std::size_t depth);

}  // namespace trees
