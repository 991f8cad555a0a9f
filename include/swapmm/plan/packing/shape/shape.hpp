// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include <swapmm/plan/packing.hpp>

namespace swapmm::planning::packing {

constexpr std::uint64_t nowhere = std::numeric_limits<std::uint64_t>::max();

using Offsets = std::vector<std::uint64_t>;  ///< one per item of a Shape, or `nowhere`

/// The lowest offset at or above `offset` such that `size` bytes cross no multiple of `arena`. Sizes and arenas are
/// multiples of the alignment, so an aligned offset stays aligned.
constexpr std::uint64_t above(std::uint64_t offset, std::uint64_t size, std::uint64_t arena) {
  if (arena == nowhere || offset % arena + size <= arena) return offset;
  return offset - offset % arena + arena;
}

/// The reduced form of a problem: sizes are rounded up, and slots are merged into sections. A section is a set of items
/// that are there at the same time, and no other section contains all of them: it begins with an arrival after a
/// departure. Items overlap in slots if and only if they overlap in sections.
struct Shape {
  struct Item {
    std::uint64_t size = 0;
    std::uint32_t first = 0;   ///< section
    std::uint32_t count = 1;   ///< sections, on the circle
    std::uint32_t length = 1;  ///< slots
  };

  /// Takes the items of `problem` that are in `chosen`, in that order.
  Shape(const PackingProblem& problem, const std::vector<std::uint32_t>& chosen);

  std::vector<Item> items;
  std::uint32_t sections = 1;
  std::uint64_t alignment = 1;
  std::uint64_t arena = nowhere;  ///< max_allocation

  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(items.size()); }

  /// The lowest allowed offset for `size` bytes at or above `offset`.
  [[nodiscard]] std::uint64_t allowed(std::uint64_t offset, std::uint64_t size) const {
    return above(offset, size, arena);
  }

  /// True if `item` is in `section`.
  [[nodiscard]] bool covers(const Item& item, std::uint32_t section) const {
    return (section >= item.first ? section - item.first : section + (sections - item.first)) < item.count;
  }

  /// Calls visit(section) for each section of `item`.
  template <class Visit>
  void for_each_section(const Item& item, Visit&& visit) const {
    for (std::uint32_t k = 0, section = item.first; k < item.count; ++k) {
      visit(section);
      if (++section == sections) section = 0;
    }
  }

  /// The largest offset + size.
  [[nodiscard]] std::uint64_t height(const Offsets& offsets) const;
};

}  // namespace swapmm::planning::packing
