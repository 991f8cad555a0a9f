// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include <swapmm/base/bytes.hpp>
#include <swapmm/base/result.hpp>

namespace swapmm {

/// Bytes that are needed for `length` time slots from `start` on, on a circle of slots: a lifetime may wrap.
struct PackingItem {
  Bytes size;
  std::uint32_t start = 0;   ///< below PackingProblem::slots
  std::uint32_t length = 1;  ///< from 1 to PackingProblem::slots
};

/// Where to place items so that no two share a byte in a slot. Sizes and capacity are below 2^62.
struct PackingProblem {
  std::uint32_t slots = 1;
  Bytes capacity;                       ///< offsets + sizes stay within it
  Bytes alignment{1};                   ///< offsets are multiples of it; sizes are rounded up to it
  std::optional<Bytes> max_allocation;  ///< no item crosses a multiple of it; itself a multiple of the alignment
  std::vector<PackingItem> items;
};

struct Packing {
  std::vector<Bytes> offsets;           ///< one per item
  Bytes height;                         ///< the largest offset + size, sizes rounded up
  std::vector<std::uint32_t> unplaced;  ///< with PackingEffort::keep_most: items whose offsets end above the capacity
};

/// How much to try where the greedy orders do not fit. Counted in steps, not in time: same problem, same packing.
struct PackingEffort {
  /// Steps of the searches: about a microsecond each for a hundred items that share a slot, ten for a thousand. 0 for
  /// greedy orders alone. Where so many items meet that a step is long, fewer are done.
  std::uint32_t ejection_steps = 4000;
  /// If given, the searches go on for as long as it says true, whatever the number of steps (unless that is 0). Asked
  /// every few milliseconds of work; false ends the search with the lowest packing so far.
  const std::function<bool()>* go_on = nullptr;
  /// With go_on, the number of steps is a limit as well.
  bool keeps_to_steps = false;
  /// Where no packing fits: as little as possible (by size x lifetime) without a place within the capacity, instead of
  /// a low height.
  bool keep_most = false;

  // Techniques, in the order in which they are tried. The skyline's order comes before all of them.
  bool greedy_orders = true;  ///< first and best fit by length, area, size and start
  bool squeaky_wheel = true;  ///< orders in which items without a place come sooner; with keep_most alone
  bool ejection = true;       ///< items take occupied places, and those who were there look for others
  bool backtracking = true;   ///< all packings in canonical form, as far as the steps go
  // Of backtracking.
  bool dominance = true;            ///< leaves out packings with a gap that another item fills
  bool section_floors = true;       ///< raises the floor of a section to the lowest offset of what is to come there
  bool decomposition = true;        ///< packs items apart that share no slot with each other
  std::uint32_t orders = 3;         ///< of choices that are tried, from 1 to 3
  std::uint32_t most_items = 512;   ///< with more items, it is left out
  std::uint32_t many_items = 6000;  ///< above, the skyline is the only order: each other one would take too long
};

/// In the preferred offsets of pack_towards(): an item that may go anywhere.
inline constexpr Bytes no_preferred_offset{std::numeric_limits<std::uint64_t>::max()};

/// Offsets within the capacity, or a Problem with the lowest height that was reached. Several greedy orders, then
/// searches (docs/planning.md). Exact where all items share one slot and there are at most 12, and wherever the
/// steps suffice to try everything. About n log n for n items where the greedy orders fit.
[[nodiscard]] Result<Packing> pack(const PackingProblem& problem, PackingEffort effort = {});

/// The same, but where no offsets within the capacity are found, the lowest that were: `height` says how much room
/// they take. A Problem only where an item is larger than max_allocation.
///
/// `preferred`, if not empty, has an offset per item, of an earlier packing of a similar problem: items keep theirs
/// where that is possible, and the search begins there. It need not be valid.
[[nodiscard]] Result<Packing> pack_towards(const PackingProblem& problem, PackingEffort effort = {},
                                           std::span<const Bytes> preferred = {});

/// The lowest packing found, whatever problem.capacity is. A Problem only where an item is larger than
/// max_allocation.
[[nodiscard]] Result<Packing> pack_lowest(const PackingProblem& problem, PackingEffort effort = {});

/// The most bytes that are needed in one slot: no packing is lower. n log n.
[[nodiscard]] Bytes packing_load(const PackingProblem& problem);

}  // namespace swapmm
