// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include <swapmm/plan/search/timing/range_load.hpp>

namespace swapmm::planning {

/// Who lies at which bytes from which operation of the circle on: the places within a budget, and what is left between
/// them. Nobody shares a byte with another at the same operation.
class PlaceBoard {
 public:
  using GuestId = std::uint32_t;
  static constexpr std::uint64_t no_place = std::numeric_limits<std::uint64_t>::max();

  /// Bytes of a guest, and the operations for which they are its own: from `start`, below n, on.
  struct Place {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::uint32_t start = 0;
    std::uint32_t slots = 0;
    GuestId guest = 0;
  };

  PlaceBoard(std::uint32_t operations, std::uint64_t budget);

  /// Not empty, and in any order.
  void add_all(const std::vector<Place>& places);
  /// Not empty. Takes a move of all places above it, and log(operations).
  void add(const Place& place);
  void remove(std::uint64_t begin, GuestId guest);

  /// Whether so many bytes are free at each of these operations, be it in pieces.
  [[nodiscard]] bool has_bytes(std::uint32_t start, std::uint32_t slots, std::uint64_t size) const;

  /// Whoever is there at any of these operations is in the way from now on. Looks at all places once.
  void look_around(std::uint32_t start, std::uint32_t slots);
  /// By ascending begin.
  [[nodiscard]] const std::vector<Place>& in_the_way() const { return in_the_way_; }
  /// Between those in the way, where nobody is.
  [[nodiscard]] bool is_free(std::uint64_t begin, std::uint64_t size) const;
  /// The smallest gap that takes so many bytes, or no_place.
  [[nodiscard]] std::uint64_t free_place(std::uint64_t size) const;
  /// Where those who would have to go weigh least, by their ids: right beside somebody, or at an end; or no_place.
  [[nodiscard]] std::uint64_t cheapest_place(std::uint64_t size, std::span<const double> weights) const;

 private:
  void count(const Place& place, bool comes);

  std::uint32_t operations_;
  std::uint64_t budget_;
  std::vector<Place> places_;  ///< by ascending begin
  RangeLoad load_;             ///< bytes per operation
  std::vector<Place> in_the_way_;
};

}  // namespace swapmm::planning
