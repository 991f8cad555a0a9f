// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/recompute/replays.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <tuple>
#include <utility>

namespace swapmm::planning {

ValueHistory::ValueHistory(const Trace& trace)
    : trace_(trace), changed_by_(trace.tensors.size()), may_be_rewritten_(trace.tensors.size()) {
  for (std::size_t t = 0; t < trace.tensors.size(); ++t) {
    may_be_rewritten_[t] = trace.tensors[t].kind == TensorKind::transient;
  }
  for (const HostRead& read : trace.host_reads) may_be_rewritten_[index(read.tensor)] = false;
  for (std::uint32_t i = 0; i < trace.operations.size(); ++i) {
    for_each_access(trace.operations[i], [&](TensorId tensor, Access access) {
      if (access != Access::read) changed_by_[index(tensor)].push_back(i);
    });
  }
}

std::uint32_t ValueHistory::giver(TensorId tensor, std::uint32_t position) const {
  const std::vector<std::uint32_t>& by = changed_by_[index(tensor)];
  const auto after = std::lower_bound(by.begin(), by.end(), position);
  return after == by.begin() ? nobody : *(after - 1);
}

bool ValueHistory::changes(TensorId tensor, std::uint32_t first, std::uint32_t end) const {
  const std::vector<std::uint32_t>& by = changed_by_[index(tensor)];
  const auto at = std::lower_bound(by.begin(), by.end(), first);
  return at != by.end() && *at < end;
}

bool ValueHistory::may_run_again(std::uint32_t operation, std::uint32_t before) const {
  const TraceOperation& again = trace_.operations[operation];
  if (!again.replayable || !again.updates.empty() || operation >= before) return false;
  bool may = true;
  for_each_access(again, [&](TensorId tensor, Access access) {
    if (access == Access::write && !may_be_rewritten_[index(tensor)]) may = false;
    may = may && !changes(tensor, operation + 1, before);
  });
  return may;
}

namespace {

/// Why these replays are not possible, or an empty text.
std::string problem_of(const Trace& trace, const ValueHistory& history, std::span<const Replay> replays) {
  if (!trace.lingering.empty()) return "values linger in the trace";
  for (std::size_t i = 0; i < replays.size(); ++i) {
    const std::size_t operation = index(replays[i].operation);
    const std::size_t before = index(replays[i].before);
    if (operation >= trace.operations.size() || before >= trace.operations.size()) {
      return "replay " + std::to_string(i) + " names an operation that is not there";
    }
    if (!history.may_run_again(static_cast<std::uint32_t>(operation), static_cast<std::uint32_t>(before))) {
      return "operation " + std::to_string(operation) + " may not run again before operation " + std::to_string(before);
    }
  }
  return {};
}

}  // namespace

std::span<const Use> uses_from(const Liveness& liveness, TensorId tensor, std::uint32_t operation) {
  const std::vector<Use>& uses = liveness.uses[index(tensor)];
  const auto first = std::ranges::lower_bound(uses, operation, {}, [](const Use& use) { return index(use.operation); });
  return std::span(uses).subspan(static_cast<std::size_t>(first - uses.begin()));
}

Trace without_replayable(Trace trace) {
  for (TraceOperation& operation : trace.operations) operation.replayable = false;
  return trace;
}

Result<ReplayedTrace> with_replays(const Trace& trace, const ValueHistory& history, std::span<const Replay> replays) {
  if (const std::string why = problem_of(trace, history, replays); !why.empty()) return Problem{why};
  std::vector<Replay> sorted(replays.begin(), replays.end());
  const auto key = [](const Replay& replay) { return std::tuple(index(replay.before), index(replay.operation)); };
  std::ranges::sort(sorted, {}, key);
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());

  ReplayedTrace out;
  out.trace = trace;
  out.trace.operations.clear();
  std::vector<std::uint32_t> position(trace.operations.size());
  auto next = sorted.begin();
  const auto append = [&](std::uint32_t operation) {
    TraceOperation added = trace.operations[operation];
    added.replayable = false;
    out.trace.operations.push_back(std::move(added));
    out.runs.push_back(operation);
  };
  for (std::uint32_t i = 0; i < trace.operations.size(); ++i) {
    for (; next != sorted.end() && index(next->before) == i; ++next) {
      out.is_replay.push_back(true);
      append(static_cast<std::uint32_t>(index(next->operation)));
    }
    position[i] = static_cast<std::uint32_t>(out.runs.size());
    out.is_replay.push_back(false);
    append(i);
  }
  for (TraceTensor& tensor : out.trace.tensors) {
    if (tensor.available_from != 0) tensor.available_from = position[tensor.available_from - 1] + 1;
  }
  for (HostRead& read : out.trace.host_reads) {
    read.after_operation = static_cast<OperationId>(position[index(read.after_operation)]);
  }
  return out;
}

}  // namespace swapmm::planning

namespace swapmm {

Result<ReplayedTrace> with_replays(const Trace& trace, std::span<const Replay> replays) {
  return planning::with_replays(trace, planning::ValueHistory(trace), replays);
}

}  // namespace swapmm
