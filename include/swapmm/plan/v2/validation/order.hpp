// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/v2/engines.hpp>
#include <swapmm/plan/v2/plan.hpp>
#include <swapmm/plan/v2/validation/parts.hpp>

namespace swapmm::v2::validation {

/// The order that waits and engines enforce for any durations, in an iteration deep in the steady state. Nodes are the
/// operations, then the commands. Uses vector clocks (Fidge 1988, Mattern 1989) over the engines in use: for each
/// engine the number of elements that have certainly ended, counted from the start of the iteration. Commands without
/// an engine take no time, so their clock is the join of the clocks that they wait for, and comparing clocks is exact
/// for them, too.
///
/// Waits lead from an iteration to itself or the one before, so a cycle of waits lies within one iteration.
class Order {
 public:
  /// All indices of the plan must be in range. Takes nodes and waits times engines in use.
  Order(const Trace& trace, const Plan& plan, const Parts& parts, const detail::Engines& engines);

  /// The nodes of a cycle of waits, each of which waits for the next one; empty if there is none. If there is a cycle,
  /// no other function may be called.
  [[nodiscard]] const std::vector<std::uint32_t>& circle() const { return circle_; }
  /// False if chains of waits reach back through more iterations than in any realistic plan.
  [[nodiscard]] bool settled() const { return settled_; }
  [[nodiscard]] std::size_t operations() const { return operations_; }
  [[nodiscard]] std::uint32_t command_node(std::size_t command) const {
    return static_cast<std::uint32_t>(operations_ + command);
  }

  /// Whether `first`, `back` iterations before, has always ended when `second` starts.
  [[nodiscard]] bool before(std::uint32_t first, std::uint32_t second, std::int64_t back) const;
  /// Whether both take no time and happen in the same instant.
  [[nodiscard]] bool same_instant(std::uint32_t first, std::uint32_t second) const;

  /// Whether `second` waits for `first`, maybe through others, and all of them happen in one instant.
  [[nodiscard]] bool chained(std::uint32_t first, std::uint32_t second) const;

  /// A sort key for the nodes of one iteration: a node comes after all those that happen before it.
  struct Rank {
    std::int64_t ended;   ///< increases along every order; equal only in the same instant, or if there is no order
    std::uint32_t chain;  ///< position in a chain of commands within one instant; nodes with an engine come after it
    bool occupies;        ///< in one instant without a chain, releases come first: occupation is half-open
    friend auto operator<=>(const Rank&, const Rank&) = default;
  };
  [[nodiscard]] const Rank& rank(std::uint32_t node) const { return ranks_[node]; }

 private:
  static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();
  /// No element of the engine, in any iteration, is known to have ended. The sum of 2^17 of these fits 64 bits.
  static constexpr std::int64_t unknown = -(std::int64_t{1} << 45);

  struct Node {
    std::uint32_t engine = none;  // among the engines in use
    std::uint32_t position = 0;   // on its engine
    std::uint32_t first_edge = 0;
    bool occupies = false;
  };
  struct Edge {
    std::uint32_t from;  // waits
    std::uint32_t node;  // is waited for
    std::uint32_t back;  // iterations
  };

  void add_nodes(const Plan& plan, const detail::Engines& engines);
  void add_waits(const Plan& plan);
  void add_turns();
  void add_conflicts(const Trace& trace, const Plan& plan, const Parts& parts, const detail::Engines& engines);
  void index_edges();
  bool sort();
  void settle();
  bool join_waits(std::uint32_t node);
  void rank_nodes();

  [[nodiscard]] std::span<const std::int64_t> start(std::uint32_t node) const {
    return {start_.data() + node * engines_, engines_};
  }
  /// What the clock of an engine says when the node has ended.
  [[nodiscard]] std::int64_t ended(std::uint32_t node, std::size_t engine) const {
    const Node& at = nodes_[node];
    return at.engine == engine ? std::int64_t{at.position} + 1 : start_[node * engines_ + engine];
  }

  std::size_t operations_;
  std::size_t engines_ = 0;  // in use
  bool settled_ = false;
  std::vector<std::int64_t> lengths_;  // elements per iteration, for each engine in use
  std::vector<Node> nodes_;            // operations, commands, the end of the iteration, and an end mark
  std::vector<Edge> edges_;            // by the waiting node, once indexed
  std::vector<std::uint32_t> order_;   // each node after those of its iteration that it waits for
  std::vector<std::uint32_t> circle_;
  std::vector<std::int64_t> start_;  // a clock for each node
  std::vector<Rank> ranks_;
};

}  // namespace swapmm::v2::validation
