// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/schedule/stay_facts.hpp>

#include <algorithm>
#include <cassert>

namespace swapmm::planning {
namespace {

/// The uses of one stay in order, counted from its start on.
struct StayUses {
  const std::vector<Use>& uses;
  std::size_t first = 0;  ///< position in `uses` of the first one in the stay
  std::size_t count = 0;
  std::uint32_t start = 0;
  std::uint32_t operations = 0;

  std::size_t position(std::size_t i) const { return (first + i) % uses.size(); }
  std::uint32_t operation(std::size_t i) const {
    const auto at = static_cast<std::uint32_t>(uses[position(i)].operation);
    return at >= start ? at : at + operations;
  }
  bool writes(std::size_t i) const { return uses[position(i)].access != Access::read; }
};

StayUses uses_of(const PlanningCase& planning, const Stay& stay) {
  const std::vector<Use>& uses = planning.liveness.uses[index(stay.tensor)];
  StayUses result{uses, 0, 0, stay.start, planning.operations};
  const auto first = std::lower_bound(uses.begin(), uses.end(), stay.start, [](const Use& use, std::uint32_t gap) {
    return static_cast<std::uint32_t>(use.operation) < gap;
  });
  result.first = first == uses.end() ? 0 : static_cast<std::size_t>(first - uses.begin());
  while (result.count < uses.size() && result.operation(result.count) < stay.start + stay.length) ++result.count;
  assert(result.count > 0);
  return result;
}

/// The operation of the next use that changes the tensor after use `i` of the stay, in the stay or outside it. Counted
/// like use `i`; at most n operations later.
std::uint32_t next_write_anywhere(const StayUses& stay, std::size_t i) {
  for (std::size_t next = i + 1; next < i + stay.uses.size(); ++next) {
    if (!stay.writes(next)) continue;
    const auto at = static_cast<std::uint32_t>(stay.uses[stay.position(next)].operation);
    const std::uint32_t from = stay.operation(i) % stay.operations;
    return stay.operation(i) + (at > from ? at - from : at + stay.operations - from);
  }
  return stay.operation(i) + stay.operations;
}

/// The first operation after which the host reads what use `i` wrote, counted like use `i`.
std::optional<std::uint32_t> first_host_read(const PlanningCase& planning, const Stay& stay, const StayUses& uses,
                                             std::size_t i) {
  const auto reads = host_reads_of(planning, stay.tensor);
  if (reads.empty()) return std::nullopt;
  const bool survives = planning.trace.tensors[index(stay.tensor)].kind == TensorKind::persistent;
  const std::uint32_t write = uses.operation(i);
  const std::uint32_t end =
      survives ? next_write_anywhere(uses, i) : std::min(next_write_anywhere(uses, i), planning.operations);
  std::optional<std::uint32_t> first;
  for (const HostRead& read : reads) {
    auto after = static_cast<std::uint32_t>(read.after_operation);
    while (after < write) after += planning.operations;
    if (after < end && (!first || after < *first)) first = after;
  }
  return first;
}

/// What is to become of the last value of a stay, counted from the stay's start on.
struct LastValue {
  bool needed_later = false;    ///< it is needed after the stay, or may not be lost yet
  std::uint32_t dead_from = 0;  ///< else: the gap from which it may be lost
};

LastValue last_value(const PlanningCase& planning, const Stay& stay, const StayUses& uses) {
  const std::uint32_t last_use = uses.operation(uses.count - 1);
  if (stay.always) return {false, last_use + 1};
  const auto gap = gap_after_use(planning, stay.tensor, uses.position(uses.count - 1));
  if (!gap || !gap->lingers()) return {gap && gap->value_needed, last_use + 1};
  const std::uint32_t dead_from = last_use + (gap->lost_from - gap->from);
  return {stay.start + stay.length < dead_from, dead_from};
}

/// Whether the value that is on the device at the iteration's end has lingered long enough before: it is dead.
bool is_dead_at_wrap(const PlanningCase& planning, const Stay& stay, const StayUses& uses) {
  std::size_t before = 0;
  while (before < uses.count && uses.operation(before) < uses.operations) ++before;
  if (before == 0) return false;
  const auto gap = gap_after_use(planning, stay.tensor, uses.position(before - 1));
  return gap && gap->lingers() && gap->lost_from <= uses.operations;
}

/// Whether the host has the value that is on the device at the iteration's end.
bool is_host_valid_at_wrap(const StayUses& uses, const StayFacts& facts, bool always,
                           const std::vector<WriteBack>& write_backs) {
  std::optional<std::uint32_t> write;
  for (std::size_t i = 0; i < uses.count && uses.operation(i) < uses.operations; ++i) {
    if (uses.writes(i)) write = uses.operation(i);
  }
  if (!write)
    return !always ||
           std::none_of(uses.uses.begin(), uses.uses.end(), [](const Use& use) { return use.access != Access::read; });
  for (std::uint32_t i = 0; i < facts.write_backs; ++i) {
    const WriteBack& back = write_backs[facts.first_write_back + i];
    if (back.write == *write) return back.gap <= uses.operations;
  }
  return false;
}

}  // namespace

StayFacts find_stay_facts(const PlanningCase& planning, const Stay& stay, Pace pace,
                          std::vector<WriteBack>& write_backs) {
  const StayUses uses = uses_of(planning, stay);
  StayFacts facts;
  facts.end = stay.start + stay.length;
  facts.first_use = uses.operation(0);
  facts.last_use = uses.operation(uses.count - 1);
  facts.allocated = !stay.always && uses.uses[uses.position(0)].access == Access::write;
  facts.first_write_back = static_cast<std::uint32_t>(write_backs.size());
  assert(!facts.allocated || facts.first_use == stay.start);

  const LastValue last = last_value(planning, stay, uses);
  bool written = false;
  for (std::size_t i = 0; i < uses.count; ++i) written = written || uses.writes(i);
  const bool needed_later = last.needed_later;
  // A value that the stay did not write is on the host.
  if (!stay.always && !(needed_later && written)) facts.end = written ? last.dead_from : facts.last_use + 1;
  facts.lingers = !stay.always && !needed_later && facts.end > facts.last_use + 1;

  bool is_last_write = true;
  for (std::size_t i = uses.count; written && i-- > 0;) {
    if (!uses.writes(i)) continue;
    const std::uint32_t write = uses.operation(i);
    std::optional<std::uint32_t> gap;
    if (is_last_write && needed_later) {
      gap = copies_out_early(pace) ? std::clamp(stay.write_back, write + 1, facts.end) : facts.end;
    }
    if (const auto read = first_host_read(planning, stay, uses, i)) {
      std::uint32_t after = copies_out_early(pace) ? write + 1 : *read + 1;
      if (!stay.always) after = std::min(after, facts.end);
      gap = gap ? std::min(*gap, after) : after;
    }
    is_last_write = false;
    if (!gap) continue;
    std::optional<std::uint32_t> next_write = next_write_anywhere(uses, i);
    if (!stay.always && *next_write >= facts.end) next_write.reset();
    write_backs.push_back({*gap, write, next_write});
    ++facts.write_backs;
  }
  std::reverse(write_backs.begin() + facts.first_write_back, write_backs.end());

  facts.crosses_wrap = stay.always || facts.end > planning.operations;
  facts.host_valid = facts.crosses_wrap && !is_dead_at_wrap(planning, stay, uses) &&
                     is_host_valid_at_wrap(uses, facts, stay.always, write_backs);
  return facts;
}

std::uint32_t packed_length(const PlanningCase& planning, const Stay& stay, const StayFacts& facts) {
  return std::clamp(stay.kept, facts.end - stay.start, planning.operations);
}

}  // namespace swapmm::planning
