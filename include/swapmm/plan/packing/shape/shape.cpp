// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/packing/shape/shape.hpp>

#include <algorithm>

namespace swapmm::planning::packing {
namespace {

/// The slots in which sections begin, ascending: slots with an arrival, if something has left since the previous one.
std::vector<std::uint32_t> section_starts(const PackingProblem& problem, const std::vector<std::uint32_t>& chosen) {
  std::vector<bool> arrives(problem.slots);
  std::vector<bool> leaves(problem.slots);  // at the end of the slot before
  for (const std::uint32_t id : chosen) {
    const PackingItem& item = problem.items[id];
    if (item.length == problem.slots) continue;
    arrives[item.start] = true;
    leaves[(std::uint64_t{item.start} + item.length) % problem.slots] = true;
  }
  std::vector<std::uint32_t> starts;
  bool has_left = false;
  for (const bool is_second_round : {false, true}) {  // the first round only finds has_left at slot 0
    for (std::uint32_t slot = 0; slot < problem.slots; ++slot) {
      has_left = has_left || leaves[slot];
      if (!has_left || !arrives[slot]) continue;
      has_left = false;
      if (is_second_round) starts.push_back(slot);
    }
  }
  return starts;
}

}  // namespace

Shape::Shape(const PackingProblem& problem, const std::vector<std::uint32_t>& chosen)
    : alignment(problem.alignment.value) {
  if (problem.max_allocation) arena = problem.max_allocation->value;
  const std::vector<std::uint32_t> starts = section_starts(problem, chosen);
  sections = std::max(static_cast<std::uint32_t>(starts.size()), 1U);
  // The section that begins last at or before a slot. Slots before the first start belong to the last section.
  const auto section_of = [&](std::uint32_t slot) {
    const auto next = std::upper_bound(starts.begin(), starts.end(), slot);
    return (static_cast<std::uint32_t>(next - starts.begin()) + sections - 1) % sections;
  };
  items.reserve(chosen.size());
  for (const std::uint32_t id : chosen) {
    const PackingItem& item = problem.items[id];
    Item& own = items.emplace_back();
    own.size = round_up(item.size, problem.alignment).value;
    own.length = item.length;
    if (starts.empty() || item.length == problem.slots) {
      own.count = sections;
      continue;
    }
    own.first = section_of(item.start);
    const auto end = static_cast<std::uint32_t>((std::uint64_t{item.start} + item.length - 1) % problem.slots);
    const std::uint32_t last = section_of(end);
    own.count = (last + sections - own.first) % sections + 1;
    // If it begins and ends in the same section, it is in all sections if it lasts beyond the next start.
    if (last == own.first && item.length > 1) {
      const std::uint32_t next = starts[(own.first + 1) % sections];
      const std::uint32_t to_next = next > item.start ? next - item.start : next + (problem.slots - item.start);
      if (item.length > to_next) own.count = sections;
    }
  }
}

std::uint64_t Shape::height(const Offsets& offsets) const {
  std::uint64_t height = 0;
  for (std::uint32_t item = 0; item < size(); ++item) height = std::max(height, offsets[item] + items[item].size);
  return height;
}

}  // namespace swapmm::planning::packing
