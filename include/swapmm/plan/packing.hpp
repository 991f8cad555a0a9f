// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include <swapmm/base/bytes.hpp>
#include <swapmm/base/export.hpp>
#include <swapmm/base/result.hpp>

namespace swapmm {

/// An item to pack: bytes that are needed for `length` time slots from `start` on. Slots form a circle, so a lifetime
/// may wrap around.
struct PackingItem {
  Bytes size;                ///< bytes that the item needs
  std::uint32_t start = 0;   ///< below PackingProblem::slots
  std::uint32_t length = 1;  ///< from 1 to PackingProblem::slots
};

/// A packing problem: find places such that no two items share a byte in a slot. Sizes and capacity are below 2^62.
struct PackingProblem {
  std::uint32_t slots = 1;              ///< number of slots of the circle
  Bytes capacity;                       ///< no offset + size is above this
  Bytes alignment{1};                   ///< offsets are multiples of this; sizes are rounded up to it
  std::optional<Bytes> max_allocation;  ///< no item crosses a multiple of this; must be a multiple of the alignment
  std::vector<PackingItem> items;       ///< the items to place
};

/// A solution of a packing problem.
struct Packing {
  std::vector<Bytes> offsets;           ///< one per item
  Bytes height;                         ///< the largest offset + size, sizes rounded up
  std::vector<std::uint32_t> unplaced;  ///< with PackingEffort::keep_most: items whose offsets end above the capacity
};

/// Effort of the searches if the greedy orders do not fit. It is counted in steps, so the same problem gives the same
/// packing.
struct PackingEffort {
  /// Number of search steps. A step takes about a microsecond if a hundred items share a slot, and ten for a thousand.
  /// 0: only greedy orders. If so many items share a slot that a step takes long, fewer steps are done.
  std::uint32_t ejection_steps = 4000;
  /// If given, the searches continue as long as it returns true, whatever the number of steps (unless that is 0).
  /// Called every few milliseconds of work. If it returns false, the search ends with the lowest packing so far.
  const std::function<bool()>* go_on = nullptr;
  /// With go_on: the number of steps is a limit, too.
  bool keeps_to_steps = false;
  /// If no packing fits: leave as little as possible (by size x lifetime) without a place within the capacity, instead
  /// of minimizing the height.
  bool keep_most = false;

  // Techniques, in the order in which they are tried. The skyline's order comes before all of them.
  bool greedy_orders = true;  ///< first and best fit by length, area, size and start
  bool squeaky_wheel = true;  ///< orders in which items without a place come sooner; only with keep_most
  bool ejection = true;       ///< items take occupied places, and the items that were there look for others
  bool backtracking = true;   ///< all packings in canonical form, as far as the steps go
  // Parameters of backtracking.
  bool dominance = true;  ///< leaves out packings with a gap that another item fills
  /// Raises the floor of a section to the lowest offset of the items that are still to be placed there.
  bool section_floors = true;
  bool decomposition = true;       ///< packs items that share no slot separately
  std::uint32_t orders = 3;        ///< number of orders of choices that are tried, from 1 to 3
  std::uint32_t most_items = 512;  ///< with more items, backtracking is left out
  /// With more items, only the skyline is used, because other orders would take too long.
  std::uint32_t many_items = 6000;
};

/// A preferred offset for pack_towards() that means: any place.
inline constexpr Bytes no_preferred_offset{std::numeric_limits<std::uint64_t>::max()};

/// Finds offsets within the capacity. Returns a Problem with the lowest height that was reached if it finds none. Tries
/// several greedy orders, then searches (docs/planning.md). Exact if all items share one slot and there are at most 12,
/// and whenever the steps suffice to try everything. Takes about n log n for n items if a greedy order fits.
[[nodiscard]] SWAPMM_EXPORT Result<Packing> pack(const PackingProblem& problem, PackingEffort effort = {});

/// Does the same, but if it finds no offsets within the capacity, it returns the lowest packing found; `height` says
/// how much room that takes. Returns a Problem only if an item is larger than max_allocation.
///
/// `preferred`, if not empty, has one offset per item, from an earlier packing of a similar problem. Items keep these
/// offsets if possible, and the search begins there. They need not be a valid packing.
[[nodiscard]] SWAPMM_EXPORT Result<Packing> pack_towards(const PackingProblem& problem, PackingEffort effort = {},
                                                         std::span<const Bytes> preferred = {});

/// Returns the lowest packing found, whatever problem.capacity is. Returns a Problem only if an item is larger than
/// max_allocation.
[[nodiscard]] SWAPMM_EXPORT Result<Packing> pack_lowest(const PackingProblem& problem, PackingEffort effort = {});

/// The largest number of bytes needed in one slot. No packing is lower. Takes n log n.
[[nodiscard]] SWAPMM_EXPORT Bytes packing_load(const PackingProblem& problem);

}  // namespace swapmm
