// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include <swapmm/base/bytes.hpp>
#include <swapmm/base/export.hpp>
#include <swapmm/runtime/order/clock.hpp>

namespace swapmm::runtime {

/// A place found free: where, and what must have ended before the bytes may be touched.
struct FreePlace {
  Bytes offset;
  Clock after;
};

/// Which bytes of the device, or of a slab of the host, are free: the offsets [0, budget) as arenas of equal size, one
/// after the other. Sizes given are rounded up to the alignment. Each call is linear in the number of free pieces.
class PlaceMap {
 public:
  /// `arena` is a multiple of the alignment; the last arena may be smaller.
  SWAPMM_TEMPLATE_EXPORT PlaceMap(Bytes budget, Bytes arena, Bytes alignment);

  /// Smallest free piece that holds `size`.
  [[nodiscard]] SWAPMM_TEMPLATE_EXPORT std::optional<FreePlace> take(Bytes size);
  /// Exactly this place, if all of it is free.
  [[nodiscard]] SWAPMM_TEMPLATE_EXPORT std::optional<FreePlace> take_at(Bytes offset, Bytes size);
  /// The bytes may be used again after `after`.
  SWAPMM_TEMPLATE_EXPORT void give_back(Bytes offset, Bytes size, const Clock& after) noexcept;
  /// Everything is free after `after`.
  SWAPMM_TEMPLATE_EXPORT void reset(const Clock& after);

  /// Room to book that many places without an allocation.
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
