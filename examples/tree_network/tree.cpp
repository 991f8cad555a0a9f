// SPDX-License-Identifier: Apache-2.0
#include "tree.hpp"

#include <algorithm>
#include <utility>

#include "simulated_networks/random.hpp"

namespace trees {
namespace {

using networks::below;

Symbol random_leaf(std::mt19937_64& random) { return static_cast<Symbol>(below(random, 2)); }
Symbol random_operator(std::mt19937_64& random) { return static_cast<Symbol>(2 + below(random, 4)); }

/// Builds a tree from its postfix form: an operator takes the two newest subtrees.
class Builder {
 public:
  [[nodiscard]] std::size_t waiting() const { return roots_.size(); }

  void add_leaf(Symbol symbol) { add({.symbol = static_cast<std::int32_t>(symbol)}); }
  void add_operator(Symbol symbol) {
    const std::int32_t right = take_root();
    const std::int32_t left = take_root();
    const auto parent = static_cast<std::int32_t>(tree_.nodes.size());
    node(left).parent = node(right).parent = parent;
    add({.symbol = static_cast<std::int32_t>(symbol), .left = left, .right = right});
  }
  /// The target is 1 if the expression divides by a difference, which may be 0, and else 0. No node alone can tell.
  [[nodiscard]] Tree finish() {
    tree_.target = std::ranges::any_of(tree_.nodes, [&](const Node& each) {
      return is(each, Symbol::quotient) && is(node(each.right), Symbol::difference);
    });
    return std::move(tree_);
  }

 private:
  static bool is(const Node& node, Symbol symbol) { return node.symbol == static_cast<std::int32_t>(symbol); }
  Node& node(std::int32_t index) { return tree_.nodes[static_cast<std::size_t>(index)]; }
  void add(const Node& node) {
    roots_.push_back(static_cast<std::int32_t>(tree_.nodes.size()));
    tree_.nodes.push_back(node);
  }
  std::int32_t take_root() {
    const std::int32_t root = roots_.back();
    roots_.pop_back();
    return root;
  }

  Tree tree_;
  std::vector<std::int32_t> roots_;  // of finished subtrees
};

}  // namespace

Tree random_tree(std::mt19937_64& random, std::size_t leaves) {
  Builder builder;
  std::size_t left = leaves;
  while (left > 0 || builder.waiting() > 1) {
    const bool may_join = builder.waiting() > 1;
    if (left > 0 && (!may_join || below(random, 2) == 0)) {
      builder.add_leaf(random_leaf(random));
      --left;
    } else {
      builder.add_operator(random_operator(random));
    }
  }
  return builder.finish();
}

Tree chain_tree(std::mt19937_64& random, std::size_t depth) {
  Builder builder;
  builder.add_leaf(random_leaf(random));
  for (std::size_t i = 0; i < depth; ++i) {
    builder.add_leaf(random_leaf(random));
    builder.add_operator(random_operator(random));
  }
  return builder.finish();
}

}  // namespace trees
