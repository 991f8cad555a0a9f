// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include <swapmm/plan/packing/shape/shape.hpp>

namespace swapmm::planning::packing {

/// Finds the items that share a section with an item. Its memory is proportional to the number of items. A query costs
/// little more than the number of neighbours that it finds.
class Neighbours {
 public:
  explicit Neighbours(const Shape& shape);

  /// Calls visit(other) once for each other item that takes room and shares a section with `item`.
  template <class Visit>
  void for_each(std::uint32_t item, Visit&& visit) const {
    const Shape::Item& own = shape_.items[item];
    for_each_present(own.first, [&](std::uint32_t other) {
      if (other != item) visit(other);
    });
    // Items that begin later, unless they are in the first section as well.
    const auto begin = [&](std::uint64_t from, std::uint64_t end) {
      for (std::uint32_t k = begin_[from]; k < begin_[end]; ++k) {
        if (!shape_.covers(shape_.items[by_first_[k]], own.first)) visit(by_first_[k]);
      }
    };
    const std::uint64_t end = std::uint64_t{own.first} + own.count;
    if (end <= shape_.sections) {
      begin(own.first + std::uint64_t{1}, end);
    } else {
      begin(own.first + std::uint64_t{1}, shape_.sections);
      begin(0, end - shape_.sections);
    }
  }

 private:
  /// Calls visit(other) for each item in `section`: the items at the last mark, and those that began since.
  template <class Visit>
  void for_each_present(std::uint32_t section, Visit&& visit) const {
    const std::uint32_t mark = section / stride_;
    for (std::uint32_t k = mark_begin_[mark]; k < mark_begin_[mark + 1]; ++k) {
      if (shape_.covers(shape_.items[at_marks_[k]], section)) visit(at_marks_[k]);
    }
    const std::uint32_t at_mark = mark * stride_;
    for (std::uint32_t k = begin_[at_mark + 1]; k < begin_[section + 1]; ++k) {
      const Shape::Item& other = shape_.items[by_first_[k]];
      if (shape_.covers(other, section) && !shape_.covers(other, at_mark)) visit(by_first_[k]);
    }
  }

  const Shape& shape_;
  std::vector<std::uint32_t> by_first_;  ///< items that take room, by their first section
  std::vector<std::uint32_t> begin_;  ///< per section, and the end: position in by_first_ of the items that begin in it
  std::uint32_t stride_ = 1;          ///< sections from mark to mark
  std::vector<std::uint32_t> at_marks_;    ///< the items at each mark, mark by mark
  std::vector<std::uint32_t> mark_begin_;  ///< per mark and one more
};

}  // namespace swapmm::planning::packing
