// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include <swapmm/base/bytes.hpp>
#include <swapmm/base/export.hpp>
#include <swapmm/runtime/order/clock.hpp>

namespace swapmm::runtime {

/// A free place, and the work that must end before its bytes may be used.
struct FreePlace {
  Bytes offset;
  Clock after;
};

/// The free bytes of the device, or of a host slab: the offsets [0, budget) as consecutive arenas of equal size. Sizes
/// are rounded up to the alignment. Each call is linear in the number of free pieces.
class PlaceMap {
 public:
  /// `arena` is a multiple of the alignment; the last arena may be smaller.
  SWAPMM_TEMPLATE_EXPORT PlaceMap(Bytes budget, Bytes arena, Bytes alignment);

  /// Takes a place in the smallest free piece that holds `size` bytes.
  [[nodiscard]] SWAPMM_TEMPLATE_EXPORT std::optional<FreePlace> take(Bytes size);
  /// The same where the place ends at that offset or before.
  [[nodiscard]] SWAPMM_TEMPLATE_EXPORT std::optional<FreePlace> take_below(Bytes size, Bytes end);
  /// Takes the place that ends first.
  [[nodiscard]] SWAPMM_TEMPLATE_EXPORT std::optional<FreePlace> take_lowest(Bytes size);
  /// Takes exactly this place, if all of it is free.
  [[nodiscard]] SWAPMM_TEMPLATE_EXPORT std::optional<FreePlace> take_at(Bytes offset, Bytes size);
  /// Frees a place. Its bytes may be used again after `after`.
  SWAPMM_TEMPLATE_EXPORT void give_back(Bytes offset, Bytes size, const Clock& after) noexcept;
  /// Frees everything. All bytes may be used after `after`.
  SWAPMM_TEMPLATE_EXPORT void reset(const Clock& after);

  /// Reserves room, so that booking this many places does not allocate.
  SWAPMM_TEMPLATE_EXPORT void reserve(std::size_t places);

  [[nodiscard]] Bytes used() const { return used_; }
  [[nodiscard]] Bytes budget() const { return budget_; }
  [[nodiscard]] Bytes arena() const { return arena_; }
  [[nodiscard]] Bytes alignment() const { return alignment_; }

  /// True if `sizes` fit into empty arenas together when taken one by one, the largest first. Sorts `sizes`.
  [[nodiscard]] SWAPMM_TEMPLATE_EXPORT bool would_pack(std::vector<Bytes>& sizes) const;

 private:
  struct Piece {
    Bytes offset;
    Bytes bytes;
    Clock after;
  };
  [[nodiscard]] bool same_arena(Bytes a, Bytes b) const;

  Bytes budget_;
  Bytes arena_;
  Bytes alignment_;
  Bytes used_;
  std::size_t places_ = 0;
  std::vector<Piece> free_;  // ascending offsets; neighbours of one arena are merged
};

}  // namespace swapmm::runtime
