// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include <swapmm/plan/search/timing/range_load.hpp>

namespace swapmm::planning {

/// The places of guests (stays) within a budget: which bytes each has, and for which operations of the circle. Two
/// guests never share a byte at the same operation.
class PlaceBoard {
 public:
  using GuestId = std::uint32_t;
  static constexpr std::uint64_t no_place = std::numeric_limits<std::uint64_t>::max();

  /// The bytes of a guest, and the operations for which it has them, beginning with `start`, which is below n.
  struct Place {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::uint32_t start = 0;
    std::uint32_t slots = 0;
    GuestId guest = 0;
  };

  PlaceBoard(std::uint32_t operations, std::uint64_t budget);

  /// Sets the places: not empty ones, in any order.
  void add_all(const std::vector<Place>& places);
  /// Adds a place, which must not be empty. Moves all places above it; updates the load in log(operations).
  void add(const Place& place);
  void remove(std::uint64_t begin, GuestId guest);

  /// Whether this many bytes are free at each of these operations, possibly in pieces.
  [[nodiscard]] bool has_bytes(std::uint32_t start, std::uint32_t slots, std::uint64_t size) const;

  /// Selects the places in the way: those of guests that are there at any of these operations. Examines all places
  /// once.
  void look_around(std::uint32_t start, std::uint32_t slots);
  /// The places in the way, by ascending begin.
  [[nodiscard]] const std::vector<Place>& in_the_way() const { return in_the_way_; }
  /// Whether these bytes are free of places in the way.
  [[nodiscard]] bool is_free(std::uint64_t begin, std::uint64_t size) const;
  /// The start of the smallest gap that holds this many bytes, or no_place.
  [[nodiscard]] std::uint64_t free_place(std::uint64_t size) const;
  /// The place at which the guests in the way have the least total weight; weights are by id. It is next to a guest or
  /// at an end of the budget. no_place if there is none.
  [[nodiscard]] std::uint64_t cheapest_place(std::uint64_t size, std::span<const double> weights) const;

 private:
  /// Adds the place to the load per operation, or subtracts it.
  void count(const Place& place, bool comes);

  std::uint32_t operations_;
  std::uint64_t budget_;
  std::vector<Place> places_;  ///< by ascending begin
  RangeLoad load_;             ///< bytes per operation
  std::vector<Place> in_the_way_;
};

}  // namespace swapmm::planning
