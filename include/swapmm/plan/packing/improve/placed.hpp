// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include <swapmm/plan/packing/improve/neighbours.hpp>
#include <swapmm/plan/packing/shape/shape.hpp>

namespace swapmm::planning::packing {

/// Items with their current places, for queries of the placed neighbours of one item. With up to some thousand items,
/// all placed items are kept sorted, and a query goes over them with one bit per item. With more items, a query
/// collects and sorts the neighbours.
class Placed {
 public:
  struct Range {
    std::uint64_t begin;
    std::uint64_t end;
    std::uint32_t item;
  };
  struct End {
    std::uint64_t at;
    std::uint32_t item;
  };

  explicit Placed(const Shape& shape);

  void clear();
  void place(std::uint32_t item, std::uint64_t offset);
  void remove(std::uint32_t item);
  /// One offset per item; `nowhere` for items without a place.
  [[nodiscard]] const Offsets& offsets() const { return offsets_; }

  /// Looks up the placed neighbours of `item`. ranges() has them by ascending begin, until the next query.
  void look(std::uint32_t item);
  [[nodiscard]] const std::vector<Range>& ranges() const { return ranges_; }
  /// The same by ascending end.
  const std::vector<End>& ends();

  /// Number of elements that a query goes over.
  [[nodiscard]] std::uint64_t work() const {
    return is_in_order_ ? by_begin_.size() / 4 + ranges_.size() : 8 * ranges_.size();
  }

 private:
  [[nodiscard]] bool are_neighbours(std::uint64_t row, std::uint32_t other) const {
    return ((neighbour_bits_[row + other / 64] >> (other % 64)) & 1U) != 0;
  }

  const Shape& shape_;
  Neighbours neighbours_;
  Offsets offsets_;
  bool is_in_order_;
  std::uint64_t words_per_row_ = 0;
  std::vector<std::uint64_t> neighbour_bits_;  ///< one row of bits per item
  std::vector<Range> by_begin_;                ///< all placed items, if they are kept sorted
  std::vector<End> by_end_;
  std::uint32_t looking_ = 0;
  std::vector<Range> ranges_;
  std::vector<End> ends_;
};

}  // namespace swapmm::planning::packing
