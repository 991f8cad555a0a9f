// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include <swapmm/plan/packing/shape/shape.hpp>

namespace swapmm::planning::packing {

/// The bytes that placed items take, section by section, for placing one item after another. A tree over the sections:
/// each node knows the bytes of those who are there in all of its sections, and of those who are in any. The ranges
/// melt together as places fill, so that a look at a long lifetime costs little more than at a short one.
class Board {
 public:
  explicit Board(const Shape& shape);

  void clear();
  void place(std::uint32_t item, std::uint64_t offset);

  /// True if nobody who shares a section with `item` has one of its bytes at `offset`.
  [[nodiscard]] bool is_free(std::uint32_t item, std::uint64_t offset);

  enum class Fit : std::uint8_t { first, best };
  /// The offset in the lowest (or the smallest) gap that takes `item`; where none does, the lowest above them all.
  [[nodiscard]] std::uint64_t fit(std::uint32_t item, Fit fit);

  /// Steps from range to range so far, ever since it was made.
  [[nodiscard]] std::uint64_t looks() const { return looks_; }

 private:
  struct Range {
    std::uint64_t begin;
    std::uint64_t end;
  };
  using Ranges = std::vector<Range>;  ///< ascending, with gaps between them

  /// The ranges of a node, from the first one on that ends above the place at hand.
  struct List {
    const Range* next;
    const Range* end;
  };

  struct Node {
    Ranges in_all;  ///< of items that are in all of its sections, but not in all of its parent's
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
  /// Fills lists_ with the ranges that are in the way of `item`: a few lists, each ascending. They are not melted into
  /// one, because a look seldom needs all of them.
  void gather_for(const Shape::Item& item);
  /// The lowest place for `size` bytes at or above `from` that is free in all lists, which are moved on to it.
  [[nodiscard]] std::uint64_t next_free(std::uint64_t from, std::uint64_t size);
  template <class Visit>
  void for_each_span(const Shape::Item& item, Visit&& visit) const;

  const Shape& shape_;
  std::vector<Node> nodes_;  ///< a heap: the root is 1, the halves of i are 2i and 2i + 1
  std::vector<List> lists_;
  std::uint64_t looks_ = 0;
};

}  // namespace swapmm::planning::packing
