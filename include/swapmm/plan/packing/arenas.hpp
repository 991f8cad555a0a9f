// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include <swapmm/plan/packing/shape/shape.hpp>

namespace swapmm::planning::packing {

struct ArenaAnswer {
  std::optional<Offsets> offsets;
  bool is_exact = true;  ///< if there are no offsets: proven that none exist
};

/// Packs items that all share one slot into arenas: bin packing by branch and bound. Exact for up to 12 items that take
/// room; with more items it ends after a fixed number of steps.
[[nodiscard]] ArenaAnswer pack_arenas(const Shape& shape, std::uint64_t capacity);

}  // namespace swapmm::planning::packing
