// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
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
  std::vector<Bytes> offsets;  ///< one per item
  Bytes height;                ///< the largest offset + size, sizes rounded up
};

/// How much to try where the greedy orders do not fit. Counted in steps, not in time: same problem, same packing.
struct PackingEffort {
  /// Items placed by the ejection search; 0 for greedy orders alone.
  std::uint32_t ejection_steps = 4000;
};

/// Offsets within the capacity, or a Problem with the lowest height that was reached. Several greedy orders with
/// best fit, then an ejection search: an item without a place takes the one whose present owners are cheapest to
/// move (size x lifetime, dearer each time), and those look for another.
[[nodiscard]] Result<Packing> pack(const PackingProblem& problem, PackingEffort effort = {});

/// The same, but where no offsets within the capacity are found, the lowest that were: `height` says how much room
/// they take. A Problem only where an item is larger than max_allocation.
[[nodiscard]] Result<Packing> pack_towards(const PackingProblem& problem, PackingEffort effort = {});

/// The lowest packing found, by narrowing the capacity step by step; its height may lie above problem.capacity.
/// For measuring. A Problem only where an item is larger than max_allocation.
[[nodiscard]] Result<Packing> pack_lowest(const PackingProblem& problem, PackingEffort effort = {});

/// The most bytes that are needed in one slot: no packing is lower.
[[nodiscard]] Bytes packing_load(const PackingProblem& problem);

}  // namespace swapmm
