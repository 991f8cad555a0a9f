// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/search/timing/range_load.hpp>

#include <algorithm>
#include <bit>
#include <limits>

namespace swapmm::planning {
namespace {

constexpr std::int64_t lowest = std::numeric_limits<std::int64_t>::min() / 2;

}  // namespace

RangeLoad::RangeLoad(const std::vector<std::int64_t>& values)
    : operations_(static_cast<std::uint32_t>(values.size())), size_(std::bit_ceil(values.size())), nodes_(2 * size_) {
  for (std::size_t i = 0; i < size_; ++i) nodes_[size_ + i].most = i < values.size() ? values[i] : lowest;
  for (std::size_t node = size_; node-- > 1;) {
    nodes_[node].most = std::max(nodes_[2 * node].most, nodes_[2 * node + 1].most);
  }
}

void RangeLoad::add(std::uint32_t first, std::uint32_t end, std::int64_t amount) {
  const std::uint32_t n = operations_;
  if (first >= n) {
    first -= n;
    end -= n;
  }
  add_to(first, std::min(end, n), amount);
  if (end > n) add_to(0, end - n, amount);
}

std::int64_t RangeLoad::most(std::uint32_t first, std::uint32_t end) const {
  const std::uint32_t n = operations_;
  if (first >= n) {
    first -= n;
    end -= n;
  }
  const std::int64_t before_wrap = most_of(first, std::min(end, n));
  return end > n ? std::max(before_wrap, most_of(0, end - n)) : before_wrap;
}

std::int64_t RangeLoad::at(std::uint32_t operation) const {
  std::size_t node = size_ + operation;
  std::int64_t value = nodes_[node].most;
  for (node /= 2; node >= 1; node /= 2) value += nodes_[node].added;
  return value;
}

std::uint32_t RangeLoad::until_above(std::uint32_t first, std::uint32_t end, std::int64_t most) const {
  const std::uint32_t n = operations_;
  const std::uint32_t round = first >= n ? n : 0;
  std::size_t found = find_above(1, 0, size_, first - round, most);
  if (found >= n && end - round > n) found = n + find_above(1, 0, size_, 0, most);
  return std::min(static_cast<std::uint32_t>(found) + round, end);
}

/// The first operation at or after `from`, below this node, whose number is above `most`; size_ if there is none.
std::size_t RangeLoad::find_above(std::size_t node, std::size_t begin, std::size_t count, std::size_t from,
                                  std::int64_t most) const {
  if (begin + count <= from || nodes_[node].most <= most) return size_;
  if (count == 1) return begin;
  const std::int64_t below = most - nodes_[node].added;
  const std::size_t left = find_above(2 * node, begin, count / 2, from, below);
  return left < size_ ? left : find_above(2 * node + 1, begin + count / 2, count / 2, from, below);
}

void RangeLoad::renew_above(std::size_t node) {
  for (node /= 2; node >= 1; node /= 2) {
    nodes_[node].most = std::max(nodes_[2 * node].most, nodes_[2 * node + 1].most) + nodes_[node].added;
  }
}

void RangeLoad::add_to(std::size_t first, std::size_t end, std::int64_t amount) {
  if (first >= end) return;
  const auto take = [&](std::size_t node) {
    nodes_[node].most += amount;
    nodes_[node].added += amount;
  };
  std::size_t left = first + size_;
  std::size_t right = end + size_;
  for (; left < right; left /= 2, right /= 2) {
    if (left % 2 == 1) take(left++);
    if (right % 2 == 1) take(--right);
  }
  renew_above(first + size_);
  renew_above(end - 1 + size_);
}

// Goes bottom up, and on the way adds what was added to the nodes above.
std::int64_t RangeLoad::most_of(std::size_t first, std::size_t end) const {
  if (first >= end) return lowest;
  std::int64_t from_left = lowest;
  std::int64_t from_right = lowest;
  std::size_t left = first + size_;
  std::size_t right = end + size_;
  while (left < right) {
    if (left % 2 == 1) from_left = std::max(from_left, nodes_[left++].most);
    if (right % 2 == 1) from_right = std::max(from_right, nodes_[--right].most);
    left /= 2;
    right /= 2;
    // `left - 1` and `right` are the parents of the outermost nodes that were taken.
    if (left > 1) from_left += nodes_[left - 1].added;
    if (right < size_ && right >= 1) from_right += nodes_[right].added;
  }
  for (left = (left - 1) / 2; left >= 1; left /= 2) from_left += nodes_[left].added;
  for (right /= 2; right >= 1; right /= 2) from_right += nodes_[right].added;
  return std::max(from_left, from_right);
}

}  // namespace swapmm::planning
