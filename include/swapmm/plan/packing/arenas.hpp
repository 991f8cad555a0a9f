// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include <swapmm/plan/packing/shape/shape.hpp>

namespace swapmm::planning::packing {

struct ArenaAnswer {
  std::optional<Offsets> offsets;
  bool is_exact = true;  ///< no offsets: there are none
};

/// For items that are all there at once, within arenas: bin packing by branch and bound. Exact for up to 12 items
/// that take room; with more of them it ends after a set number of steps.
[[nodiscard]] ArenaAnswer pack_arenas(const Shape& shape, std::uint64_t capacity);

}  // namespace swapmm::planning::packing
