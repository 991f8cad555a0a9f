// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/ways/program/history.hpp>

#include <algorithm>
#include <cstddef>
#include <unordered_map>
#include <unordered_set>
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

namespace {

/// Operations to look at, each once.
class Worklist {
 public:
  void add(std::uint32_t operation) {
    if (known_.insert(operation).second) found_.push_back(operation);
  }
  [[nodiscard]] bool has_next() const { return next_ < found_.size(); }
  std::uint32_t next() { return found_[next_++]; }
  [[nodiscard]] std::vector<std::uint32_t> take() { return std::move(found_); }

 private:
  std::unordered_set<std::uint32_t> known_;
  std::vector<std::uint32_t> found_;
  std::size_t next_ = 0;
};

}  // namespace

std::vector<std::uint32_t> ValueHistory::group(std::uint32_t operation, std::uint32_t before) const {
  Worklist needed;
  needed.add(operation);
  std::unordered_map<TensorId, std::uint32_t> known_from;  // all changes of the tensor from there on are needed
  while (needed.has_next()) {
    const std::uint32_t current = needed.next();
    const TraceOperation& again = trace_.operations[current];
    if (!again.replayable || current >= before) return {};
    bool may = true;
    for_each_access(again, [&](TensorId tensor, Access access) {
      if (!may) return;
      if (access == Access::read) {
        may = !changes(tensor, current + 1, before);
        return;
      }
      may = may_be_rewritten_[index(tensor)];
      if (may && access == Access::update) {
        const std::uint32_t gave = giver(tensor, current);
        may = gave != nobody;
        if (may) needed.add(gave);
      }
      std::uint32_t& from = known_from.try_emplace(tensor, before).first->second;
      const std::vector<std::uint32_t>& by = changed_by_[index(tensor)];
      for (auto next = std::upper_bound(by.begin(), by.end(), current); may && next != by.end() && *next < from;
           ++next) {
        may = updates(*next, tensor);
        if (may) needed.add(*next);
      }
      from = std::min(from, current + 1);
    });
    if (!may) return {};
  }
  std::vector<std::uint32_t> group = needed.take();
  std::ranges::sort(group);
  return group;
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

Ways ways_in(const Trace& trace) {
  return {.recompute = std::ranges::any_of(trace.operations, &TraceOperation::replayable),
          .compress = !trace.forms.empty(),
          .pieces = std::ranges::any_of(trace.operations, &TraceOperation::in_pieces)};
}

std::vector<Ways> fewer_ways(const Trace& trace, const Ways& allowed) {
  Ways there = ways_in(trace);
  // Where forms may be used, tensors that have some are not divided.
  there.pieces = there.pieces || std::ranges::any_of(trace.ranges, [&](const AccessRange& range) {
                   return !forms_of(trace, range.tensor).empty();
                 });
  std::vector<bool Ways::*> kinds;
  for (bool Ways::*const kind : {&Ways::recompute, &Ways::compress, &Ways::pieces}) {
    if (there.*kind && allowed.*kind) kinds.push_back(kind);
  }
  std::vector<Ways> fewer;
  const unsigned all = (1U << kinds.size()) - 1;
  for (unsigned chosen = 1; chosen < all; ++chosen) {
    Ways& ways = fewer.emplace_back(Ways{.recompute = false, .compress = false, .pieces = false});
    for (std::size_t k = 0; k < kinds.size(); ++k) ways.*kinds[k] = (chosen >> k & 1U) != 0;
  }
  return fewer;
}

bool has_ways(const Trace& trace, const Ways& ways) {
  const Ways there = ways_in(trace);
  return (ways.compress && there.compress) || (ways.recompute && there.recompute);
}

bool is_version_1_but_for_ways(const Trace& trace) {
  return trace.engines.empty() && trace.ranges.empty() && !ways_in(trace).pieces;
}

}  // namespace swapmm::planning
