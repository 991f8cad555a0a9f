// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/stalls.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include <swapmm/plan/simulator.hpp>

namespace swapmm {
namespace {

using std::chrono::nanoseconds;

/// Looks from an operation that starts late for the copy whose end it starts at.
class StallSearch {
 public:
  StallSearch(const Trace& trace, const Plan& plan)
      : plan_(plan), operations_(trace.operations.size()), simulation_(simulate(trace, plan)) {}

  [[nodiscard]] nanoseconds time_before(std::size_t operation) const {
    const nanoseconds free = operation == 0 ? nanoseconds{0} : simulation_.operations[operation - 1].end;
    return simulation_.operations[operation].start - free;
  }

  [[nodiscard]] std::optional<CommandId> copy_before(std::size_t operation) const {
    const nanoseconds start = simulation_.operations[operation].start;
    for (std::size_t j = 0; j < plan_.commands.size(); ++j) {
      const auto& before = plan_.commands[j].before_operation;
      if (!before || *before % operations_ != operation) continue;
      const bool previous = *before >= operations_;
      if (end_of(j, previous) == start) return copy_behind(j, previous, plan_.commands.size());
    }
    return std::nullopt;
  }

 private:
  [[nodiscard]] nanoseconds end_of(std::size_t command, bool previous) const {
    return simulation_.commands[command].end - (previous ? simulation_.iteration : nanoseconds{0});
  }

  // Bytes that become free: what took the time is the copy before. `most` bounds the way back.
  [[nodiscard]] std::optional<CommandId> copy_behind(std::size_t command, bool previous, std::size_t most) const {
    const Command& at = plan_.commands[command];
    if (at.kind == CommandKind::swap_in || at.kind == CommandKind::swap_out)
      return CommandId{static_cast<std::uint32_t>(command)};
    const nanoseconds start = end_of(command, previous);
    for (const Wait& wait : at.after) {
      if (wait.on != Wait::On::command || most == 0 || (wait.previous && previous)) continue;
      const auto next = static_cast<std::size_t>(wait.index);
      if (end_of(next, previous || wait.previous) != start) continue;
      if (const auto found = copy_behind(next, previous || wait.previous, most - 1)) return found;
    }
    return std::nullopt;
  }

  const Plan& plan_;
  std::size_t operations_;
  Simulation simulation_;
};

}  // namespace

std::vector<Stall> find_stalls(const Trace& trace, const Plan& plan) {
  const StallSearch search(trace, plan);
  std::vector<Stall> stalls;
  for (std::size_t i = 0; i < trace.operations.size(); ++i) {
    const nanoseconds time = search.time_before(i);
    if (time > nanoseconds{0})
      stalls.push_back({OperationId{static_cast<std::uint32_t>(i)}, time, search.copy_before(i)});
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
