// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/ways/history.hpp>

#include <algorithm>
#include <cstddef>
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

std::vector<std::uint32_t> ValueHistory::group(std::uint32_t operation, std::uint32_t before) const {
  std::vector<std::uint32_t> group;
  if (!add_to(group, operation, before)) return {};
  std::ranges::sort(group);
  return group;
}

bool ValueHistory::add_to(std::vector<std::uint32_t>& group, std::uint32_t operation, std::uint32_t before) const {
  if (std::ranges::find(group, operation) != group.end()) return true;
  const TraceOperation& again = trace_.operations[operation];
  if (!again.replayable || operation >= before) return false;
  group.push_back(operation);
  bool may = true;
  for_each_access(again, [&](TensorId tensor, Access access) {
    if (access == Access::read) {
      may = may && !changes(tensor, operation + 1, before);
      return;
    }
    may = may && may_be_rewritten_[index(tensor)];
    if (access == Access::update) {
      const std::uint32_t gave = giver(tensor, operation);
      may = may && gave != nobody && add_to(group, gave, before);
    }
    const std::vector<std::uint32_t>& by = changed_by_[index(tensor)];
    for (auto next = std::upper_bound(by.begin(), by.end(), operation); may && next != by.end() && *next < before;
         ++next)
      may = updates(*next, tensor) && add_to(group, *next, before);
  });
  return may;
}

bool ValueHistory::updates(std::uint32_t operation, TensorId tensor) const {
  const std::vector<TensorId>& list = trace_.operations[operation].updates;
  return std::ranges::find(list, tensor) != list.end();
}

bool ValueHistory::may_be_coded(TensorId tensor, std::uint32_t after, std::uint32_t before) const {
  return may_be_rewritten_[index(tensor)] && after < before && giver(tensor, after + 1) != nobody &&
         !changes(tensor, after + 1, before);
}

std::span<const Use> uses_from(const Liveness& liveness, TensorId tensor, std::uint32_t operation) {
  const std::vector<Use>& uses = liveness.uses[index(tensor)];
  const auto first = std::ranges::lower_bound(uses, operation, {}, [](const Use& use) { return index(use.operation); });
  return std::span(uses).subspan(static_cast<std::size_t>(first - uses.begin()));
}

std::vector<std::uint32_t> count_full(const PlanningCase& planning) {
  std::vector<std::uint32_t> full(planning.operations + 1, 0);
  for (std::uint32_t i = 0; i < planning.operations; ++i) {
    full[i + 1] = full[i] + (planning.liveness.live[i].value > planning.budget ? 1 : 0);
  }
  return full;
}

Trace only_ways(Trace trace, const Ways& ways) {
  for (TraceOperation& operation : trace.operations) operation.replayable = operation.replayable && ways.recompute;
  if (!ways.compress) trace.forms.clear();
  return trace;
}

Trace without_ways(Trace trace) {
  return only_ways(std::move(trace), {.recompute = false, .compress = false, .pieces = false});
}

bool has_ways(const Trace& trace) { return has_ways(trace, {}); }

bool has_ways(const Trace& trace, const Ways& ways) {
  return (ways.compress && !trace.forms.empty()) ||
         (ways.recompute && std::ranges::any_of(trace.operations, &TraceOperation::replayable));
}

bool is_version_1_but_for_ways(const Trace& trace) {
  return trace.engines.empty() && trace.ranges.empty() &&
         std::ranges::none_of(trace.operations, &TraceOperation::in_pieces);
}

}  // namespace swapmm::planning
