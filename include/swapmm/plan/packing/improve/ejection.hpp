// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include <swapmm/plan/packing/improve/placed.hpp>
#include <swapmm/plan/packing/shape/budget.hpp>
#include <swapmm/plan/packing/shape/shape.hpp>

namespace swapmm::planning::packing {

/// An ejection search. Items without a place take the cheapest occupied place. The ejected items look for another
/// place, and their cost to move rises, so the search does not cycle. The costs are kept from one run to the next.
class Ejection {
 public:
  explicit Ejection(const Shape& shape);

  /// Searches for a packing within `capacity`, beginning with `start`. In it no two items overlap; items with
  /// `nowhere`, or that end above the capacity, have no place yet. Places at most `steps` items. Returns true if all
  /// have a place: see offsets().
  bool run(const Offsets& start, std::uint64_t capacity, std::uint64_t steps, Budget& budget);

  [[nodiscard]] const Offsets& offsets() const { return placed_.offsets(); }

 private:
  [[nodiscard]] bool is_less_urgent(std::uint32_t a, std::uint32_t b) const {
    return weights_[a] != weights_[b] ? weights_[a] < weights_[b] : a > b;
  }
  void push(std::uint32_t item);
  std::uint32_t pop();
  [[nodiscard]] double first_weight(std::uint32_t item) const;
  [[nodiscard]] std::uint64_t free_place(std::uint64_t size) const;
  [[nodiscard]] std::uint64_t cheapest_place(std::uint64_t size);
  void eject(std::uint64_t begin, std::uint64_t end);

  const Shape& shape_;
  Placed placed_;
  std::uint64_t capacity_ = 0;
  std::vector<double> weights_;
  std::vector<std::uint32_t> unplaced_;  ///< a heap, the heaviest first
};

}  // namespace swapmm::planning::packing
