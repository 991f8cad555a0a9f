// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/packing/improve/canonical.hpp>

#include <algorithm>
#include <array>
#include <limits>

namespace swapmm::planning::packing {
namespace {

constexpr std::uint64_t placements_per_step = 8;  // they take about as long as one placement by ejection

}  // namespace

Canonical::Canonical(const Shape& shape, const PackingEffort& effort)
    : shape_(shape),
      has_dominance_(effort.dominance),
      has_section_floors_(effort.section_floors),
      has_decomposition_(effort.decomposition),
      neighbours_(shape.size()),
      in_section_(shape.sections),
      seen_(shape.sections) {
  for (std::uint32_t i = 0; i < shape.size(); ++i) {
    if (shape.items[i].size == 0) continue;
    shape.for_each_section(shape.items[i], [&](std::uint32_t section) { in_section_[section].push_back(i); });
  }
  std::vector<std::uint32_t> found_for(shape.size(), none);
  for (std::uint32_t i = 0; i < shape.size(); ++i) {
    if (shape.items[i].size == 0) continue;
    found_for[i] = i;
    shape.for_each_section(shape.items[i], [&](std::uint32_t section) {
      for (const std::uint32_t other : in_section_[section]) {
        if (found_for[other] == i) continue;
        found_for[other] = i;
        neighbours_[i].push_back(other);
      }
    });
  }
}

/// Calls visit(section) for each section after which `item` is still there.
template <class Visit>
void Canonical::for_each_border(std::uint32_t item, Visit&& visit) const {
  const Shape::Item& own = shape_.items[item];
  std::uint32_t left = own.count == shape_.sections ? own.count : own.count - 1;
  for (std::uint32_t section = own.first; left > 0; --left) {
    visit(section);
    if (++section == shape_.sections) section = 0;
  }
}

Canonical::Answer Canonical::run(std::uint64_t capacity, Order order, std::uint64_t steps, Budget& budget) {
  if (!begin(capacity, order)) return Answer::fits_not;
  if (frames_.empty()) return Answer::fits;  // nothing takes room
  for (; steps > 0 && !budget.is_spent(); --steps) {
    while (frames_.back().next_choice == frames_.back().choices_end) {
      if (!backtrack()) return Answer::fits_not;
    }
    Frame& frame = frames_.back();
    undo(frame);
    const Choice choice = choices_[frame.next_choice++];
    frame.placed = choice.item;
    work_ = 100;
    const bool is_possible = place(frame, choice);
    if (++placements_ % placements_per_step == 0) {
      budget.spend(work_);
    } else {
      budget.spend_work(work_);
    }
    if (is_possible && descend(choice)) return Answer::fits;
  }
  return Answer::unknown;
}

bool Canonical::begin(std::uint64_t capacity, Order order) {
  capacity_ = capacity;
  order_ = order;
  offsets_.assign(shape_.size(), nowhere);
  lowest_.assign(shape_.size(), 0);
  floors_.assign(shape_.sections, 0);
  to_come_.assign(shape_.sections, 0);
  crossing_.assign(shape_.sections, 0);
  frames_.clear();
  choices_.clear();
  ranked_.clear();
  components_.clear();
  lifts_.clear();
  raises_.clear();

  std::vector<std::uint32_t> items;
  for (std::uint32_t i = 0; i < shape_.size(); ++i) {
    const Shape::Item& own = shape_.items[i];
    if (own.size == 0) {
      offsets_[i] = 0;
      continue;
    }
    items.push_back(i);
    shape_.for_each_section(own, [&](std::uint32_t section) { to_come_[section] += own.size; });
    for_each_border(i, [&](std::uint32_t section) { ++crossing_[section]; });
  }
  if (std::any_of(to_come_.begin(), to_come_.end(), [&](std::uint64_t bytes) { return bytes > capacity; }))
    return false;
  if (items.empty()) return true;
  std::vector<std::uint32_t> cuts;
  for (std::uint32_t section = 0; has_decomposition_ && section < shape_.sections; ++section) {
    if (crossing_[section] == 0) cuts.push_back(section);
  }
  const std::uint32_t first = split(items, {0, 0, 0, shape_.sections, true, none, none, 0}, std::move(cuts));
  open(components_[first], 0);
  return true;
}

void Canonical::sort(std::vector<std::uint32_t>& items) const {
  struct Keyed {
    std::array<double, 3> keys;
    std::uint32_t item;
  };
  std::vector<Keyed> keyed;
  keyed.reserve(items.size());
  for (const std::uint32_t item : items) {
    const Shape::Item& own = shape_.items[item];
    std::uint64_t most = 0;
    shape_.for_each_section(own, [&](std::uint32_t section) { most = std::max(most, to_come_[section]); });
    const auto total = static_cast<double>(most);
    const double sections = own.count;
    const double area = static_cast<double>(own.size) * own.length;
    switch (order_) {
      case Order::sections_area_total: keyed.push_back({{sections, area, total}, item}); break;
      case Order::total_area_sections: keyed.push_back({{total, area, sections}, item}); break;
      case Order::total_sections_area: keyed.push_back({{total, sections, area}, item}); break;
    }
  }
  std::sort(keyed.begin(), keyed.end(),
            [](const Keyed& a, const Keyed& b) { return a.keys != b.keys ? a.keys > b.keys : a.item < b.item; });
  for (std::size_t k = 0; k < items.size(); ++k) items[k] = keyed[k].item;
}

std::uint32_t Canonical::add_component(std::vector<std::uint32_t>& items, Component component) {
  sort(items);
  component.begin = static_cast<std::uint32_t>(ranked_.size());
  for (std::uint32_t rank = 0; rank < items.size(); ++rank) ranked_.push_back({items[rank], rank});
  component.end = static_cast<std::uint32_t>(ranked_.size());
  components_.push_back(component);
  return static_cast<std::uint32_t>(components_.size() - 1);
}

/// A cut is given by the section before it. Returns the first of the components, linked to the others.
std::uint32_t Canonical::split(const std::vector<std::uint32_t>& items, Component whole,
                               std::vector<std::uint32_t> cuts) {
  const std::uint32_t n = shape_.sections;
  if (whole.is_circle && !cuts.empty()) whole.first = (cuts.front() + 1) % n;
  whole.is_circle = whole.is_circle && cuts.empty();
  for (std::uint32_t& cut : cuts) cut = (cut + 1 + n - whole.first) % n;  // number of sections before the cut
  std::sort(cuts.begin(), cuts.end());
  std::erase_if(cuts, [&](std::uint32_t cut) { return cut == 0 || cut >= whole.count; });

  std::vector<std::vector<std::uint32_t>> parts(cuts.size() + 1);
  for (const std::uint32_t item : items) {
    const std::uint32_t from = (shape_.items[item].first + n - whole.first) % n;
    const auto part = std::upper_bound(cuts.begin(), cuts.end(), from) - cuts.begin();
    parts[whole.is_circle ? 0 : static_cast<std::size_t>(part)].push_back(item);
  }
  std::uint32_t next = whole.next;
  for (std::size_t k = 0; k < parts.size(); ++k) {
    if (parts[k].empty()) continue;
    const std::uint32_t begin = k == 0 ? 0 : cuts[k - 1];
    const std::uint32_t end = k < cuts.size() ? cuts[k] : whole.count;
    Component part = whole;
    part.first = (whole.first + begin) % n;
    part.count = end - begin;
    part.next = next;
    next = add_component(parts[k], part);
  }
  return next;
}

/// Opens a frame with the choices for the next item of `component`. Offsets ascend in a canonical packing. By
/// dominance, an item is not a choice if it would begin where another one could have ended already: the other one would
/// fill the gap.
void Canonical::open(Component component, std::uint32_t least_rank) {
  std::uint32_t left = 0;
  std::uint64_t lowest_end = nowhere;
  for (std::uint32_t k = component.begin; k < component.end; ++k) {
    const std::uint32_t item = ranked_[k].item;
    if (offsets_[item] != nowhere) continue;
    ++left;
    lowest_end = std::min(lowest_end, lowest_[item] + shape_.items[item].size);
  }
  if (2 * left < component.end - component.begin) {
    const std::uint32_t end = component.end;
    const auto begin = static_cast<std::uint32_t>(ranked_.size());
    for (std::uint32_t k = component.begin; k < end; ++k) {
      const Ranked ranked = ranked_[k];
      if (offsets_[ranked.item] == nowhere) ranked_.push_back(ranked);
    }
    component.begin = begin;
    component.end = static_cast<std::uint32_t>(ranked_.size());
  }
  const auto choices_begin = static_cast<std::uint32_t>(choices_.size());
  for (std::uint32_t k = component.begin; k < component.end; ++k) {
    const auto [item, rank] = ranked_[k];
    if (offsets_[item] != nowhere) continue;
    const std::uint64_t offset = lowest_[item];
    if ((has_dominance_ && offset >= lowest_end) || offset < component.least_offset) continue;
    if (offset == component.least_offset && rank < least_rank) continue;
    choices_.push_back({offset, rank, item});
  }
  std::sort(choices_.begin() + choices_begin, choices_.end(), [](const Choice& a, const Choice& b) {
    return a.offset != b.offset ? a.offset < b.offset : a.rank < b.rank;
  });
  const auto size = [](const auto& stack) { return static_cast<std::uint32_t>(stack.size()); };
  frames_.push_back({component, left, choices_begin, choices_begin, size(choices_), none, size(lifts_), size(raises_),
                     size(ranked_), size(components_)});
}

/// Returns false if the remaining items cannot fit.
bool Canonical::place(const Frame& frame, const Choice& choice) {
  const Shape::Item& own = shape_.items[choice.item];
  offsets_[choice.item] = choice.offset;
  const std::uint64_t end = choice.offset + own.size;
  shape_.for_each_section(own, [&](std::uint32_t section) {
    raises_.push_back({section, floors_[section]});
    floors_[section] = end;
    to_come_[section] -= own.size;
  });
  for_each_border(choice.item, [&](std::uint32_t section) { --crossing_[section]; });
  if (!lift_neighbours(choice.item)) return false;
  if (has_section_floors_) raise_floors(frame.lifted);
  work_ += frame.component.count / 4;
  return may_fit(frame.component, choice.offset);
}

bool Canonical::lift_neighbours(std::uint32_t item) {
  const std::uint64_t end = offsets_[item] + shape_.items[item].size;
  work_ += neighbours_[item].size();
  for (const std::uint32_t other : neighbours_[item]) {
    if (offsets_[other] != nowhere) continue;
    const std::uint64_t size = shape_.items[other].size;
    const std::uint64_t lifted = shape_.allowed(end, size);
    if (lowest_[other] >= lifted) continue;
    lifts_.push_back({other, lowest_[other]});
    lowest_[other] = lifted;
    if (lifted + size > capacity_) return false;
  }
  return true;
}

/// Raises each section's floor to the lowest offset of the items that are still to be placed there.
void Canonical::raise_floors(std::size_t first_lifted) {
  for (std::size_t k = first_lifted; k < lifts_.size(); ++k) {
    shape_.for_each_section(shape_.items[lifts_[k].index], [&](std::uint32_t section) {
      ++work_;
      if (seen_[section] == placements_ || to_come_[section] == 0) return;
      seen_[section] = placements_;
      std::uint64_t lowest = nowhere;
      for (const std::uint32_t item : in_section_[section]) {
        ++work_;
        if (offsets_[item] == nowhere) lowest = std::min(lowest, lowest_[item]);
        if (lowest <= floors_[section]) return;
      }
      raises_.push_back({section, floors_[section]});
      floors_[section] = lowest;
    });
  }
}

bool Canonical::may_fit(const Component& component, std::uint64_t offset) const {
  const auto is_full = [&](std::uint32_t section) {
    return to_come_[section] > 0 && std::max(offset, floors_[section]) + to_come_[section] > capacity_;
  };
  std::uint32_t section = component.first;
  for (std::uint32_t k = 0; k < component.count; ++k) {
    if (is_full(section)) return false;
    if (++section == shape_.sections) section = 0;
  }
  return true;
}

void Canonical::undo(Frame& frame) {
  if (frame.placed == none) return;
  const std::uint32_t item = frame.placed;
  const std::uint64_t size = shape_.items[item].size;
  frame.placed = none;
  for (; raises_.size() > frame.raised; raises_.pop_back()) floors_[raises_.back().index] = raises_.back().before;
  for (; lifts_.size() > frame.lifted; lifts_.pop_back()) lowest_[lifts_.back().index] = lifts_.back().before;
  offsets_[item] = nowhere;
  shape_.for_each_section(shape_.items[item], [&](std::uint32_t section) { to_come_[section] += size; });
  for_each_border(item, [&](std::uint32_t section) { ++crossing_[section]; });
  ranked_.resize(frame.ranked);
  components_.resize(frame.components);
}

/// Leaves the last frame's component, and undoes all that was packed since it was split off. Returns false if that was
/// everything.
bool Canonical::backtrack() {
  const std::uint32_t to = frames_.back().component.frame;
  const std::size_t keep = to == none ? 0 : std::size_t{to} + 1;
  for (; frames_.size() > keep; frames_.pop_back()) {
    undo(frames_.back());
    choices_.resize(frames_.back().choices_begin);
  }
  return !frames_.empty();
}

bool Canonical::descend(const Choice& choice) {
  const auto own_index = static_cast<std::uint32_t>(frames_.size() - 1);
  Component component = frames_.back().component;
  if (frames_.back().items_left == 1) {
    if (component.next == none) return true;
    open(components_[component.next], 0);
    return false;
  }
  component.frame = own_index;
  component.least_offset = choice.offset;
  std::vector<std::uint32_t> cuts;
  for_each_border(choice.item, [&](std::uint32_t section) {
    if (has_decomposition_ && crossing_[section] == 0) cuts.push_back(section);
  });
  if (cuts.empty()) {
    open(component, choice.rank);
    return false;
  }
  std::vector<std::uint32_t> items;
  for (std::uint32_t k = component.begin; k < component.end; ++k) {
    if (offsets_[ranked_[k].item] == nowhere) items.push_back(ranked_[k].item);
  }
  open(components_[split(items, component, std::move(cuts))], 0);
  return false;
}

}  // namespace swapmm::planning::packing
