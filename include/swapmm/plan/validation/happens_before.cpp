// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/validation/happens_before.hpp>

#include <algorithm>

namespace swapmm::validation {
namespace {

/// Each round propagates clocks over one more border between iterations. Plans of all planners settle in two to four
/// rounds. Only chains of allocates and releases that each wait for the iteration before need one round per link.
constexpr int most_rounds = 64;

constexpr std::uint32_t no_node = std::numeric_limits<std::uint32_t>::max();

Engine engine_of(CommandKind kind, Duplex duplex) {
  switch (kind) {
    case CommandKind::swap_in: return Engine::host_to_device;
    case CommandKind::swap_out: return duplex == Duplex::half ? Engine::host_to_device : Engine::device_to_host;
    case CommandKind::allocate:
    case CommandKind::release: break;
  }
  return Engine::none;
}

}  // namespace

HappensBefore::HappensBefore(const Trace& trace, const Plan& plan) : operations_(trace.operations.size()) {
  add_nodes(plan);
  add_edges(plan);
  if (sort()) settle();
}

HappensBefore::Rank HappensBefore::rank(std::size_t command) const {
  const std::size_t node = command_node(command);
  const Clock& clock = start_[node];
  const Node& at = nodes_[node];
  const std::uint32_t chain = at.engine == Engine::none ? at.chain : no_node;
  return {clock[0] + clock[1] + clock[2], chain, at.occupies};
}

void HappensBefore::add_nodes(const Plan& plan) {
  nodes_.resize(operations_ + plan.commands.size() + 1);
  const auto put = [&](std::size_t node, Engine engine) {
    nodes_[node].engine = engine;
    if (engine == Engine::none) return;
    std::int64_t& length = lengths_[static_cast<std::size_t>(engine)];
    nodes_[node].position = static_cast<std::uint32_t>(length++);
  };
  for (std::size_t i = 0; i < operations_; ++i) put(i, Engine::compute);
  for (std::size_t j = 0; j < plan.commands.size(); ++j) {
    const CommandKind kind = plan.commands[j].kind;
    put(command_node(j), engine_of(kind, plan.machine.duplex));
    nodes_[command_node(j)].occupies = kind == CommandKind::allocate || kind == CommandKind::swap_in;
  }
}

void HappensBefore::add_edges(const Plan& plan) {
  const std::size_t n = operations_;
  // Commands by the operation that waits for them: a counting sort.
  std::vector<std::uint32_t> first_waited(n + 1);
  for (const Command& command : plan.commands) {
    if (command.before_operation) ++first_waited[*command.before_operation % n + 1];
  }
  for (std::size_t i = 0; i < n; ++i) first_waited[i + 1] += first_waited[i];
  std::vector<Edge> waited(first_waited[n]);
  std::size_t waits = n + waited.size();
  for (std::size_t j = plan.commands.size(); j-- > 0;) {
    const Command& command = plan.commands[j];
    waits += command.after.size() + 1;
    if (!command.before_operation) continue;
    const std::uint32_t back = *command.before_operation < n ? 0 : 1;
    waited[--first_waited[*command.before_operation % n + 1]] = {static_cast<std::uint32_t>(n + j), back};
  }
  // The loop above moved each start to where its own entries begin, one place to the right.
  const auto waited_begin = [&](std::size_t operation) { return first_waited[operation + 1]; };
  const auto waited_end = [&](std::size_t operation) {
    return operation + 1 < n ? first_waited[operation + 2] : static_cast<std::uint32_t>(waited.size());
  };

  edges_.reserve(waits);
  std::array<std::uint32_t, engine_count> last{no_node, no_node, no_node};
  const auto begin_node = [&](std::size_t node) {
    Node& at = nodes_[node];
    at.first_edge = static_cast<std::uint32_t>(edges_.size());
    if (at.engine == Engine::none) return;
    std::uint32_t& before = last[static_cast<std::size_t>(at.engine)];
    if (before != no_node) edges_.push_back({before, 0});
    before = static_cast<std::uint32_t>(node);
  };
  // The first element of an engine waits for its last one of the iteration before. One pass over all commands finds it.
  for (std::size_t j = 0; j < plan.commands.size(); ++j) {
    const Engine engine = nodes_[command_node(j)].engine;
    if (engine != Engine::none) last[static_cast<std::size_t>(engine)] = static_cast<std::uint32_t>(command_node(j));
  }
  const std::array<std::uint32_t, engine_count> last_of_all = last;
  last = {no_node, no_node, no_node};

  for (std::size_t i = 0; i < n; ++i) {
    begin_node(i);
    if (i == 0) edges_.push_back({static_cast<std::uint32_t>(n - 1), 1});
    edges_.insert(edges_.end(), waited.begin() + waited_begin(i), waited.begin() + waited_end(i));
  }
  for (std::size_t j = 0; j < plan.commands.size(); ++j) {
    const std::size_t node = command_node(j);
    begin_node(node);
    const Engine engine = nodes_[node].engine;
    if (engine != Engine::none && nodes_[node].position == 0) {
      edges_.push_back({last_of_all[static_cast<std::size_t>(engine)], 1});
    }
    for (const Wait& wait : plan.commands[j].after) {
      const std::int64_t at = wait.index;
      if (wait.on == Wait::On::command) {
        edges_.push_back({static_cast<std::uint32_t>(command_node(static_cast<std::size_t>(at))), wait.previous});
      } else {
        const std::int64_t operation = at >= 0 ? at : at + static_cast<std::int64_t>(n);
        edges_.push_back({static_cast<std::uint32_t>(operation), at < 0});
      }
    }
  }
  nodes_.back().first_edge = static_cast<std::uint32_t>(edges_.size());
}

// Depth-first search; an edge to a node that is still open closes a cycle.
bool HappensBefore::sort() {
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
        const auto from =
            std::find_if(path.begin(), path.end(), [&](const Open& open) { return open.node == edge.node; });
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
void HappensBefore::settle() {
  Clock nothing;
  nothing.fill(unknown);
  start_.assign(nodes_.size() - 1, nothing);
  for (int round = 0; round < most_rounds && !settled_; ++round) {
    bool changed = false;
    for (const std::uint32_t node : order_) changed = join_waits(node) || changed;
    settled_ = !changed;
  }
  find_chains();
}

bool HappensBefore::join_waits(std::uint32_t node) {
  Clock& clock = start_[node];
  bool changed = false;
  for (std::uint32_t e = nodes_[node].first_edge; e < nodes_[node + 1].first_edge; ++e) {
    const Edge edge = edges_[e];
    const Clock before = end(edge.node);
    for (std::size_t engine = 0; engine < engine_count; ++engine) {
      const std::int64_t known = before[engine] - std::int64_t{edge.back} * lengths_[engine];
      if (known <= clock[engine]) continue;
      clock[engine] = known;
      changed = true;
    }
  }
  return changed;
}

// Finds chains: allocates and releases of one instant that wait for each other.
void HappensBefore::find_chains() {
  for (const std::uint32_t node : order_) {
    Node& at = nodes_[node];
    if (at.engine != Engine::none) continue;
    for (std::uint32_t e = at.first_edge; e < nodes_[node + 1].first_edge; ++e) {
      const Edge edge = edges_[e];
      const Node& waited = nodes_[edge.node];
      if (edge.back != 0 || waited.engine != Engine::none || start_[edge.node] != start_[node]) continue;
      at.chain = std::max(at.chain, waited.chain + 1);
    }
  }
}

}  // namespace swapmm::validation
