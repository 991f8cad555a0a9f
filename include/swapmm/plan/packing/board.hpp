// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include <swapmm/plan/packing/shape/shape.hpp>

namespace swapmm::planning::packing {

/// The bytes that placed items take in each section, for placing one item after another. A tree over the sections: each
/// node has the bytes of items that are in all of its sections, and of items that are in any of them. Ranges are merged
/// as places fill, so a long lifetime costs little more to examine than a short one.
class Board {
 public:
  explicit Board(const Shape& shape);

  void clear();
  void place(std::uint32_t item, std::uint64_t offset);

  /// True if no item that shares a section with `item` has any of its bytes at `offset`.
  [[nodiscard]] bool is_free(std::uint32_t item, std::uint64_t offset);

  enum class Fit : std::uint8_t { first, best };
  /// The offset in the lowest (or smallest) gap that takes `item`; if there is none, the lowest offset above all
  /// ranges.
  [[nodiscard]] std::uint64_t fit(std::uint32_t item, Fit fit);

  /// Number of steps from range to range since construction.
  [[nodiscard]] std::uint64_t looks() const { return looks_; }

 private:
  struct Range {
    std::uint64_t begin;
    std::uint64_t end;
  };
  using Ranges = std::vector<Range>;  ///< ascending, with gaps between them

  /// The ranges of a node, from the first one on that ends above the current place.
  struct List {
    const Range* next;
    const Range* end;
  };

  struct Node {
    Ranges in_all;  ///< ranges of items in all of its sections, but not in all of its parent's
    Ranges in_any;
  };
  /// Sections from `begin` to `end`, within a node's `low` to `high`.
  struct Span {
    std::uint32_t begin;
    std::uint32_t end;
  };

  static void add(Ranges& ranges, Range range);
  void insert(std::uint32_t node, Span of_node, Span span, Range range);
  void gather(std::uint32_t node, Span of_node, Span span);
  /// Fills lists_ with the ranges that are in the way of `item`: a few ascending lists. They are not merged into one,
  /// because most searches do not need all of them.
  void gather_for(const Shape::Item& item);
  /// The lowest place for `size` bytes at or above `from` that is free in all lists. Advances the lists to it.
  [[nodiscard]] std::uint64_t next_free(std::uint64_t from, std::uint64_t size);
  template <class Visit>
  void for_each_span(const Shape::Item& item, Visit&& visit) const;

  const Shape& shape_;
  std::vector<Node> nodes_;  ///< a heap: the root is 1, the halves of i are 2i and 2i + 1
  std::vector<List> lists_;
  std::uint64_t looks_ = 0;
};

}  // namespace swapmm::planning::packing
