// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace swapmm::planning::relaxation {

/// A segment tree over boundaries, each with the value of coming back there and the cost of leaving there. Finds the
/// best boundary of a range, and the best pair of leaving and coming back later. Building is linear; a query is
/// logarithmic.
class WindowTree {
 public:
  static constexpr double nothing = -std::numeric_limits<double>::infinity();
  static constexpr std::uint32_t nowhere = 0xffffffff;

  struct Answer {
    double back = nothing;    ///< largest value of coming back
    double leave = -nothing;  ///< smallest cost of leaving
    double both = nothing;    ///< largest value of coming back, minus the cost of leaving before that
    std::uint32_t back_at = nowhere;
    std::uint32_t leave_at = nowhere;
    std::uint32_t both_back_at = nowhere;
    std::uint32_t both_leave_at = nowhere;
  };

  explicit WindowTree(std::size_t size) : size_(size), leaves_(std::bit_ceil(size)), nodes_(2 * leaves_) {}

  /// Call build() after the last set().
  void set(std::uint32_t at, double back, double leave) {
    nodes_[leaves_ + at] = {back, leave, nothing, at, at, nowhere, nowhere};
  }
  void build() {
    // Behind the last boundary all nodes stay as they are: empty.
    std::size_t used = size_;
    for (std::size_t level = leaves_ / 2; level > 0; level /= 2) {
      used = (used + 1) / 2;
      for (std::size_t i = level; i < level + used; ++i) nodes_[i] = merge(nodes_[2 * i], nodes_[2 * i + 1]);
    }
  }

  /// The answer for [first, last]; an empty Answer if the range is empty.
  [[nodiscard]] Answer ask(std::uint32_t first, std::uint32_t last) const {
    Answer left;
    Answer right;
    std::size_t begin = first + leaves_;
    std::size_t end = std::size_t{last} + leaves_ + 1;
    for (; begin < end; begin /= 2, end /= 2) {
      if (begin % 2 == 1) left = merge(left, nodes_[begin++]);
      if (end % 2 == 1) right = merge(nodes_[--end], right);
    }
    return merge(left, right);
  }

 private:
  static Answer merge(const Answer& a, const Answer& b) {
    Answer result = a;
    if (b.back > a.back) {
      result.back = b.back;
      result.back_at = b.back_at;
    }
    if (b.leave < a.leave) {
      result.leave = b.leave;
      result.leave_at = b.leave_at;
    }
    if (b.both > a.both) {
      result.both = b.both;
      result.both_back_at = b.both_back_at;
      result.both_leave_at = b.both_leave_at;
    }
    const double across = b.back - a.leave;
    if (across > result.both) {
      result.both = across;
      result.both_back_at = b.back_at;
      result.both_leave_at = a.leave_at;
    }
    return result;
  }

  std::size_t size_;
  std::size_t leaves_;
  std::vector<Answer> nodes_;
};

}  // namespace swapmm::planning::relaxation
