// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/plan.hpp>

namespace swapmm::validation {

/// Engines that run one thing at a time, in list order, iteration after iteration. With half duplex both directions
/// run on `host_to_device`.
enum class Engine : std::uint8_t { compute, host_to_device, device_to_host, none };
inline constexpr std::size_t engine_count = 3;

/// A vector clock: for each engine the number of elements that have certainly ended at some point of iteration k,
/// counted from the start of iteration k. A number below 0 means that this many elements of the iterations before may
/// not have ended.
using Clock = std::array<std::int64_t, engine_count>;
/// No element of the engine, in any iteration, is known to have ended. Less than all other numbers of a clock, also
/// with iterations taken off.
inline constexpr std::int64_t unknown = std::numeric_limits<std::int64_t>::min() / 8;

/// The order that a plan's waits and engines enforce for any durations, in an iteration deep in the steady state. Uses
/// vector clocks (Fidge 1988, Mattern 1989) over the engines. `allocate` and `release` take no time and no engine, so
/// their clock is the join of the clocks they wait for, and comparing clocks is exact for them, too. The order also
/// holds in the first iterations, where more has ended already.
///
/// Edges lead from an iteration to itself or the next, never back, so a cycle of waits lies within one iteration.
class HappensBefore {
 public:
  /// All indices of the plan must be in range. Linear in operations, commands and waits.
  HappensBefore(const Trace& trace, const Plan& plan);

  /// The nodes of a cycle of waits, each of which waits for the next one; empty if there is none. If there is a cycle,
  /// no other function may be called.
  [[nodiscard]] const std::vector<std::uint32_t>& circle() const { return circle_; }
  /// False if chains of waits reach back through more iterations than in any realistic plan. The order found is then
  /// incomplete, and allocates and releases may seem to come sooner than they do.
  [[nodiscard]] bool settled() const { return settled_; }
  [[nodiscard]] std::size_t operations() const { return operations_; }

  /// Whether `first`, `back` iterations before, has always ended when `second` starts.
  [[nodiscard]] bool command_before_command(std::size_t first, std::size_t second, std::int64_t back) const {
    return ended(end(command_node(first)), start_[command_node(second)], back);
  }
  [[nodiscard]] bool command_before_operation(std::size_t first, std::size_t operation, std::int64_t back) const {
    return ended(end(command_node(first)), start_[operation], back);
  }
  /// The number of operations, counted from the start of the iteration, that have ended when the command starts.
  [[nodiscard]] std::int64_t operations_ended_before(std::size_t command) const {
    return start_[command_node(command)][static_cast<std::size_t>(Engine::compute)];
  }
  /// Whether both are allocate or release and happen in the same instant.
  [[nodiscard]] bool same_instant(std::size_t first, std::size_t second) const {
    return nodes_[command_node(first)].engine == Engine::none && nodes_[command_node(second)].engine == Engine::none &&
           start_[command_node(first)] == start_[command_node(second)];
  }

  /// A sort key for the commands of one iteration: a command comes after all those that happen before it.
  struct Rank {
    std::int64_t ended;   ///< increases along every order; equal only in the same instant, or if there is no order
    std::uint32_t chain;  ///< position in a chain of allocates and releases within one instant; copies come after it
    bool occupies;        ///< in one instant without a chain, releases come first: occupation is half-open
    friend auto operator<=>(const Rank&, const Rank&) = default;
  };
  [[nodiscard]] Rank rank(std::size_t command) const;

 private:
  struct Node {
    Engine engine = Engine::none;
    bool occupies = false;
    std::uint32_t position = 0;  // on its engine
    std::uint32_t first_edge = 0;
    std::uint32_t chain = 0;
  };
  struct Edge {
    std::uint32_t node;
    std::uint32_t back;  // iterations
  };

  [[nodiscard]] std::size_t command_node(std::size_t command) const { return operations_ + command; }
  [[nodiscard]] Clock end(std::size_t node) const {
    Clock clock = start_[node];
    const Node& at = nodes_[node];
    if (at.engine != Engine::none) clock[static_cast<std::size_t>(at.engine)] = std::int64_t{at.position} + 1;
    return clock;
  }
  [[nodiscard]] bool ended(const Clock& needed, const Clock& known, std::int64_t back) const {
    for (std::size_t engine = 0; engine < engine_count; ++engine) {
      if (needed[engine] - back * lengths_[engine] > known[engine]) return false;
    }
    return true;
  }
  void add_nodes(const Plan& plan);
  void add_edges(const Plan& plan);
  bool sort();
  void settle();
  bool join_waits(std::uint32_t node);
  void find_chains();

  std::size_t operations_;
  bool settled_ = false;
  std::array<std::int64_t, engine_count> lengths_{};  // elements per iteration
  std::vector<Node> nodes_;                           // operations, then commands, then an end mark
  std::vector<Edge> edges_;                           // what each node waits for
  std::vector<std::uint32_t> order_;                  // each node after what it waits for in its iteration
  std::vector<std::uint32_t> circle_;
  std::vector<Clock> start_;
};

}  // namespace swapmm::validation
