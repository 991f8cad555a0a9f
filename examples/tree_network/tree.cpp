// SPDX-License-Identifier: Apache-2.0
#include "tree.hpp"

namespace trees {
namespace {

std::size_t below(std::mt19937_64& random, std::size_t limit) { return random() % limit; }

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
  /// The target is the part of the products and quotients that have a sum or a difference as an operand, which takes
  /// brackets to write: nothing that a node alone can tell.
  [[nodiscard]] Tree finish() {
    float all = 0;
    float bracketed = 0;
    for (const Node& each : tree_.nodes) {
      if (!is(each, Symbol::product, Symbol::quotient)) continue;
      all += 1;
      const bool has_brackets =
          is(node(each.left), Symbol::sum, Symbol::difference) || is(node(each.right), Symbol::sum, Symbol::difference);
      bracketed += has_brackets ? 1.0F : 0.0F;
    }
    tree_.target = all == 0 ? 0 : bracketed / all;
    return std::move(tree_);
  }

 private:
  static bool is(const Node& node, Symbol a, Symbol b) {
    return node.symbol == static_cast<std::int32_t>(a) || node.symbol == static_cast<std::int32_t>(b);
  }
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
