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

/// Bytes that are needed for `length` time slots from `start` on, on a circle of slots: a lifetime may wrap.
struct PackingItem {
  Bytes size;                ///< of the item
  std::uint32_t start = 0;   ///< below PackingProblem::slots
  std::uint32_t length = 1;  ///< from 1 to PackingProblem::slots
};

/// Where to place items so that no two share a byte in a slot. Sizes and capacity are below 2^62.
struct PackingProblem {
  std::uint32_t slots = 1;              ///< of the circle
  Bytes capacity;                       ///< offsets + sizes stay within it
  Bytes alignment{1};                   ///< offsets are multiples of it; sizes are rounded up to it
  std::optional<Bytes> max_allocation;  ///< no item crosses a multiple of it; itself a multiple of the alignment
  std::vector<PackingItem> items;       ///< to place
};

/// A solution of a PackingProblem.
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
};

/// In the preferred offsets of pack_towards(): an item that may go anywhere.
inline constexpr Bytes no_preferred_offset{std::numeric_limits<std::uint64_t>::max()};

/// Offsets within the capacity, or a Problem with the lowest height that was reached. Several greedy orders, then
/// searches (docs/planning.md). Exact where all items share one slot and there are at most 12, and wherever the
/// steps suffice to try everything. About n log n for n items where the greedy orders fit.
[[nodiscard]] SWAPMM_EXPORT Result<Packing> pack(const PackingProblem& problem, PackingEffort effort = {});

/// The same, but where no offsets within the capacity are found, the lowest that were: `height` says how much room
/// they take. A Problem only where an item is larger than max_allocation.
///
/// `preferred`, if not empty, has an offset per item, of an earlier packing of a similar problem: items keep theirs
/// where that is possible, and the search begins there. It need not be valid.
[[nodiscard]] SWAPMM_EXPORT Result<Packing> pack_towards(const PackingProblem& problem, PackingEffort effort = {},
                                                         std::span<const Bytes> preferred = {});

/// The lowest packing found, whatever problem.capacity is. A Problem only where an item is larger than
/// max_allocation.
[[nodiscard]] SWAPMM_EXPORT Result<Packing> pack_lowest(const PackingProblem& problem, PackingEffort effort = {});

/// The most bytes that are needed in one slot: no packing is lower. n log n.
[[nodiscard]] SWAPMM_EXPORT Bytes packing_load(const PackingProblem& problem);

}  // namespace swapmm
