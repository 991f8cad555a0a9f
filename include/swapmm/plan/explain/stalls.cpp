// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/stalls.hpp>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <swapmm/plan/simulate.hpp>

namespace swapmm {
namespace {

using std::chrono::nanoseconds;

/// Finds the copy at whose end a late operation starts. Each command is examined once, however many operations need it,
/// because plans may come from files and have any size and shape.
class StallSearch {
 public:
  StallSearch(const Trace& trace, const Plan& plan)
      : plan_(plan),
        simulation_(simulate(trace, plan)),
        commands_before_(trace.operations.size()),
        known_(2 * plan.commands.size()) {
    for (std::size_t j = 0; j < plan.commands.size(); ++j) {
      if (const auto& before = plan.commands[j].before_operation) {
        commands_before_[*before % trace.operations.size()].push_back({j, *before >= trace.operations.size()});
      }
    }
  }

  [[nodiscard]] nanoseconds time_before(std::size_t operation) const {
    const nanoseconds free = operation == 0 ? nanoseconds{0} : simulation_.operations[operation - 1].end;
    return simulation_.operations[operation].start - free;
  }

  [[nodiscard]] std::optional<CommandId> copy_before(std::size_t operation) {
    const nanoseconds start = simulation_.operations[operation].start;
    for (const Node& node : commands_before_[operation]) {
      if (end_of(node) == start) return copy_behind(node);
    }
    return std::nullopt;
  }

 private:
  /// A command, of this iteration or of the one before.
  struct Node {
    std::size_t command;
    bool previous;
  };
  struct Known {
    bool visited = false;
    std::optional<CommandId> copy;
  };
  struct Step {
    Node node;
    std::size_t next_wait = 0;
  };

  [[nodiscard]] Known& known(const Node& node) { return known_[2 * node.command + (node.previous ? 1 : 0)]; }
  [[nodiscard]] nanoseconds end_of(const Node& node) const {
    return simulation_.commands[node.command].end - (node.previous ? simulation_.iteration : nanoseconds{0});
  }
  [[nodiscard]] bool is_copy(const Node& node) const {
    const CommandKind kind = plan_.commands[node.command].kind;
    return kind == CommandKind::swap_in || kind == CommandKind::swap_out;
  }

  // Returns the copy that delayed a command: the command itself if it is a copy, otherwise a copy that it waited for
  // and that ended in the same instant. Depth-first search with an explicit path, because chains may be as long as the
  // plan.
  [[nodiscard]] std::optional<CommandId> copy_behind(const Node& from) {
    std::vector<Step> path;
    const auto enter = [&](const Node& node) -> std::optional<CommandId> {
      Known& seen = known(node);
      if (seen.visited) return seen.copy;
      seen.visited = true;
      if (is_copy(node)) return seen.copy = id_at<CommandId>(node.command);
      path.push_back({node});
      return std::nullopt;
    };
    std::optional<CommandId> found = enter(from);
    while (!found && !path.empty()) {
      const Node node = path.back().node;
      const std::vector<Wait>& waits = plan_.commands[node.command].after;
      if (path.back().next_wait == waits.size()) {
        path.pop_back();
        continue;
      }
      const Wait& wait = waits[path.back().next_wait++];
      if (wait.on != Wait::On::command || (wait.previous && node.previous)) continue;
      const Node before{static_cast<std::size_t>(wait.index), node.previous || wait.previous};
      if (end_of(before) == end_of(node)) found = enter(before);
    }
    for (const Step& step : path) known(step.node).copy = found;
    return found;
  }

  const Plan& plan_;
  Simulation simulation_;
  std::vector<std::vector<Node>> commands_before_;  // per operation: the commands that it waits for
  std::vector<Known> known_;                        // per node
};

}  // namespace

std::vector<Stall> find_stalls(const Trace& trace, const Plan& plan) {
  StallSearch search(trace, plan);
  std::vector<Stall> stalls;
  for (std::size_t i = 0; i < trace.operations.size(); ++i) {
    const nanoseconds time = search.time_before(i);
    if (time > nanoseconds{0}) stalls.push_back({id_at<OperationId>(i), time, search.copy_before(i)});
  }
  std::stable_sort(stalls.begin(), stalls.end(), [](const Stall& a, const Stall& b) { return a.time > b.time; });
  return stalls;
}

std::string describe(const Stall& stall, const Trace& trace, const Plan& plan) {
  std::string operation = "operation \"" + trace.operations[index(stall.operation)].name + "\" waits";
  if (!stall.copy) return operation;
  const Command& copy = plan.commands[index(*stall.copy)];
  const std::string& tensor = trace.tensors[index(copy.tensor)].name;
  if (copy.kind == CommandKind::swap_in) return operation + " for tensor \"" + tensor + "\" to come in";
  return operation + " for the room of tensor \"" + tensor + "\" that goes out";
}

}  // namespace swapmm
