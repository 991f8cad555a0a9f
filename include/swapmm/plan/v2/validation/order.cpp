// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/v2/validation/order.hpp>

#include <algorithm>
#include <set>

namespace swapmm::v2::validation {
namespace {

/// Each round propagates clocks over one more border between iterations. Plans settle in two to four rounds. Only
/// chains of commands without an engine that each wait for the iteration before need one round per link.
constexpr int most_rounds = 64;

}  // namespace

Order::Order(const Trace& trace, const Plan& plan, const Parts& parts, const detail::Engines& engines)
    : operations_(trace.operations.size()) {
  add_nodes(plan, engines);
  add_waits(plan);
  add_turns();
  add_conflicts(trace, plan, parts, engines);
  index_edges();
  if (!sort()) return;
  settle();
  rank_nodes();
}

// Nodes with their engines, and the waits that follow from the order on each engine (rule 2).
void Order::add_nodes(const Plan& plan, const detail::Engines& engines) {
  struct Element {
    std::uint32_t engine;
    std::int64_t key;  // 2p; half a step is 1
    std::uint32_t node;
    auto operator<=>(const Element&) const = default;
  };
  nodes_.resize(operations_ + plan.commands.size() + 2);
  std::vector<Element> elements;
  elements.reserve(nodes_.size());
  for (std::size_t i = 0; i < operations_; ++i) {
    elements.push_back({static_cast<std::uint32_t>(engines.engine(id_at<OperationId>(i))),
                        2 * static_cast<std::int64_t>(i), static_cast<std::uint32_t>(i)});
  }
  for (std::size_t j = 0; j < plan.commands.size(); ++j) {
    const Command& command = plan.commands[j];
    Node& node = nodes_[command_node(j)];
    node.occupies = command.offset.has_value();
    if (!has_engine(command.kind)) continue;
    auto engine = static_cast<std::uint32_t>(command.engine);
    if (command.kind == CommandKind::copy) {
      engine = static_cast<std::uint32_t>(v2::engine_of(plan.machine, command.link));
    }
    if (command.kind == CommandKind::run) engine = elements[index(command.operation)].engine;  // operations come first
    const std::int64_t position =
        command.position ? std::int64_t{*command.position} : static_cast<std::int64_t>(operations_);
    elements.push_back({engine, 2 * position - 1, command_node(j)});
  }
  std::sort(elements.begin(), elements.end());
  for (std::size_t first = 0; first < elements.size();) {
    std::size_t last = first;
    while (last < elements.size() && elements[last].engine == elements[first].engine) ++last;
    for (std::size_t e = first; e < last; ++e) {
      nodes_[elements[e].node].engine = static_cast<std::uint32_t>(engines_);
      nodes_[elements[e].node].position = static_cast<std::uint32_t>(e - first);
      if (e > first) edges_.push_back({elements[e].node, elements[e - 1].node, 0});
    }
    edges_.push_back({elements[first].node, elements[last - 1].node, 1});
    lengths_.push_back(static_cast<std::int64_t>(last - first));
    ++engines_;
    first = last;
  }
}

void Order::add_waits(const Plan& plan) {
  const auto n = static_cast<std::int64_t>(operations_);
  for (std::size_t j = 0; j < plan.commands.size(); ++j) {
    const Command& command = plan.commands[j];
    const std::uint32_t node = command_node(j);
    for (const Wait& wait : command.after) {
      const std::int64_t at = wait.index;
      if (wait.on == Wait::On::command) {
        edges_.push_back({node, command_node(static_cast<std::size_t>(at)), wait.previous ? 1U : 0U});
      } else {
        edges_.push_back({node, static_cast<std::uint32_t>(at >= 0 ? at : at + n), at < 0 ? 1U : 0U});
      }
    }
    for (const std::uint32_t operation : command.before_operations) {
      const bool next = operation >= operations_;
      edges_.push_back({next ? operation - static_cast<std::uint32_t>(operations_) : operation, node, next ? 1U : 0U});
    }
  }
}

// Rule 2, fourth point: one node stands for the end of all operations of an iteration.
void Order::add_turns() {
  const auto turn = static_cast<std::uint32_t>(nodes_.size() - 2);
  std::vector<std::uint32_t> first(engines_, none);
  std::vector<std::uint32_t> last(engines_, none);
  for (std::uint32_t i = 0; i < operations_; ++i) {
    const std::uint32_t engine = nodes_[i].engine;
    if (first[engine] == none) first[engine] = i;
    last[engine] = i;
  }
  for (std::size_t engine = 0; engine < engines_; ++engine) {
    if (first[engine] == none) continue;
    edges_.push_back({turn, last[engine], 0});
    edges_.push_back({first[engine], turn, 1});
  }
}

// Rule 2, third point.
void Order::add_conflicts(const Trace& trace, const Plan& plan, const Parts& parts, const detail::Engines& engines) {
  struct Last {
    std::uint32_t engine;
    MemoryId memory;
    std::uint32_t node;
    bool writes;
  };
  const HostEnds ends(trace, parts);
  std::vector<std::uint32_t> user(plan.machine.memories.size(), none);
  bool shared = false;
  const auto uses = [&](MemoryId of, std::uint32_t engine) {
    std::uint32_t& first = user[index(of)];
    if (first == none) first = engine;
    shared = shared || first != engine;
  };
  for (std::uint32_t i = 0; i < operations_; ++i) {
    uses(engines.memory(OperationId{i}), nodes_[i].engine);
    if (!ends.at(i).empty()) uses(plan.machine.host, nodes_[i].engine);
  }
  if (!shared) return;

  std::vector<std::vector<Last>> last(parts.parts());  // for each part: a writer per memory, and the readers since then
  const auto access = [&](std::uint32_t i, std::size_t part, MemoryId in, bool writes) {
    const std::uint32_t engine = nodes_[i].engine;
    for (const Last& other : last[part]) {
      if (other.memory == in && other.engine != engine && (writes || other.writes))
        edges_.push_back({i, other.node, 0});
    }
    // A writer stands for everything before it, a reader for those of its engine.
    std::erase_if(last[part], [&](const Last& other) {
      return other.memory == in && (writes || (!other.writes && other.engine == engine));
    });
    last[part].push_back({engine, in, i, writes});
  };
  for (std::uint32_t i = 0; i < operations_; ++i) {
    for (const PartAccess& each : parts.accesses(i)) {
      access(i, each.part, engines.memory(OperationId{i}), each.access != Access::read);
    }
    for (const PartAccess& each : ends.at(i)) access(i, each.part, plan.machine.host, each.access != Access::read);
  }
}

void Order::index_edges() {
  std::stable_sort(edges_.begin(), edges_.end(), [](const Edge& a, const Edge& b) { return a.from < b.from; });
  std::uint32_t edge = 0;
  for (std::uint32_t node = 0; node < nodes_.size(); ++node) {
    nodes_[node].first_edge = edge;
    while (edge < edges_.size() && edges_[edge].from == node) ++edge;
  }
}

bool Order::before(std::uint32_t first, std::uint32_t second, std::int64_t back) const {
  const std::span<const std::int64_t> known = start(second);
  for (std::size_t engine = 0; engine < engines_; ++engine) {
    const std::int64_t needed = ended(first, engine);
    if (needed <= unknown / 2) continue;  // it waits for nothing on this engine
    if (needed - back * lengths_[engine] > known[engine]) return false;
  }
  return true;
}

bool Order::same_instant(std::uint32_t first, std::uint32_t second) const {
  return nodes_[first].engine == none && nodes_[second].engine == none &&
         std::ranges::equal(start(first), start(second));
}

// Chains are short, and few commands of one instant share bytes.
bool Order::chained(std::uint32_t first, std::uint32_t second) const {
  if (!same_instant(first, second) || ranks_[first].chain >= ranks_[second].chain) return false;
  std::vector<std::uint32_t> open{second};
  std::set<std::uint32_t> seen;
  while (!open.empty()) {
    const std::uint32_t node = open.back();
    open.pop_back();
    for (std::uint32_t e = nodes_[node].first_edge; e < nodes_[node + 1].first_edge; ++e) {
      const Edge& edge = edges_[e];
      if (edge.back != 0 || !same_instant(edge.node, node)) continue;
      if (edge.node == first) return true;
      if (ranks_[edge.node].chain > ranks_[first].chain && seen.insert(edge.node).second) open.push_back(edge.node);
    }
  }
  return false;
}

// Depth-first search; an edge to a node that is still open closes a cycle.
bool Order::sort() {
  struct Open {
    std::uint32_t node;
    std::uint32_t edge;
  };
  enum class Mark : std::uint8_t { unseen, open, done };
  const std::size_t count = nodes_.size() - 1;
  std::vector<Mark> marks(count, Mark::unseen);
  std::vector<Open> path;
  order_.reserve(count);
  for (std::uint32_t root = 0; root < count; ++root) {
    if (marks[root] != Mark::unseen) continue;
    marks[root] = Mark::open;
    path.push_back({root, nodes_[root].first_edge});
    while (!path.empty()) {
      Open& top = path.back();
      if (top.edge == nodes_[top.node + 1].first_edge) {
        marks[top.node] = Mark::done;
        order_.push_back(top.node);
        path.pop_back();
        continue;
      }
      const Edge edge = edges_[top.edge++];
      if (edge.back != 0 || marks[edge.node] == Mark::done) continue;
      if (marks[edge.node] == Mark::open) {
        const auto from = std::ranges::find(path, edge.node, &Open::node);
        for (auto open = from; open != path.end(); ++open) circle_.push_back(open->node);
        return false;
      }
      marks[edge.node] = Mark::open;
      path.push_back({edge.node, nodes_[edge.node].first_edge});
    }
  }
  return true;
}

// Computes the least fixed point from below. It grows with each round and is bounded.
void Order::settle() {
  start_.assign((nodes_.size() - 1) * engines_, unknown);
  for (int round = 0; round < most_rounds && !settled_; ++round) {
    bool changed = false;
    for (const std::uint32_t node : order_) changed = join_waits(node) || changed;
    settled_ = !changed;
  }
}

bool Order::join_waits(std::uint32_t node) {
  bool changed = false;
  for (std::uint32_t e = nodes_[node].first_edge; e < nodes_[node + 1].first_edge; ++e) {
    const Edge& edge = edges_[e];
    for (std::size_t engine = 0; engine < engines_; ++engine) {
      const std::int64_t known = ended(edge.node, engine) - std::int64_t{edge.back} * lengths_[engine];
      std::int64_t& clock = start_[node * engines_ + engine];
      if (known <= clock) continue;
      clock = known;
      changed = true;
    }
  }
  return changed;
}

void Order::rank_nodes() {
  ranks_.resize(nodes_.size() - 1);
  for (std::uint32_t node = 0; node < ranks_.size(); ++node) {
    std::int64_t sum = 0;
    for (const std::int64_t clock : start(node)) sum += clock;
    ranks_[node] = {sum, nodes_[node].engine == none ? 0 : none, nodes_[node].occupies};
  }
  // Chains: commands of one instant that wait for each other.
  for (const std::uint32_t node : order_) {
    if (nodes_[node].engine != none) continue;
    for (std::uint32_t e = nodes_[node].first_edge; e < nodes_[node + 1].first_edge; ++e) {
      const Edge& edge = edges_[e];
      if (edge.back != 0 || !same_instant(edge.node, node)) continue;
      ranks_[node].chain = std::max(ranks_[node].chain, ranks_[edge.node].chain + 1);
    }
  }
}

}  // namespace swapmm::v2::validation
