// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/packing/improve/placed.hpp>

#include <algorithm>

namespace swapmm::planning::packing {
namespace {

constexpr std::uint32_t most_items_in_order = 4096;  // two megabytes of bits

bool by_begin(const Placed::Range& a, const Placed::Range& b) {
  return a.begin != b.begin ? a.begin < b.begin : a.item < b.item;
}
bool by_end(const Placed::End& a, const Placed::End& b) { return a.at != b.at ? a.at < b.at : a.item < b.item; }

}  // namespace

Placed::Placed(const Shape& shape)
    : shape_(shape),
      neighbours_(shape),
      offsets_(shape.size(), nowhere),
      is_in_order_(shape.size() <= most_items_in_order) {
  if (!is_in_order_) return;
  words_per_row_ = (std::uint64_t{shape.size()} + 63) / 64;
  neighbour_bits_.resize(words_per_row_ * shape.size());
  for (std::uint32_t item = 0; item < shape.size(); ++item) {
    if (shape.items[item].size == 0) continue;
    neighbours_.for_each(item, [&](std::uint32_t other) {
      neighbour_bits_[item * words_per_row_ + other / 64] |= std::uint64_t{1} << (other % 64);
    });
  }
}

void Placed::clear() {
  std::fill(offsets_.begin(), offsets_.end(), nowhere);
  by_begin_.clear();
  by_end_.clear();
}

void Placed::place(std::uint32_t item, std::uint64_t offset) {
  offsets_[item] = offset;
  const std::uint64_t size = shape_.items[item].size;
  if (!is_in_order_ || size == 0) return;
  const Range range{offset, offset + size, item};
  by_begin_.insert(std::upper_bound(by_begin_.begin(), by_begin_.end(), range, by_begin), range);
  const End end{range.end, item};
  by_end_.insert(std::upper_bound(by_end_.begin(), by_end_.end(), end, by_end), end);
}

void Placed::remove(std::uint32_t item) {
  const Range range{offsets_[item], offsets_[item] + shape_.items[item].size, item};
  offsets_[item] = nowhere;
  if (!is_in_order_ || range.begin == range.end) return;
  by_begin_.erase(std::lower_bound(by_begin_.begin(), by_begin_.end(), range, by_begin));
  by_end_.erase(std::lower_bound(by_end_.begin(), by_end_.end(), End{range.end, item}, by_end));
}

void Placed::look(std::uint32_t item) {
  looking_ = item;
  if (is_in_order_) {
    // Each range is written, and kept only if it is a neighbour. This avoids a branch that cannot be predicted.
    ranges_.resize(by_begin_.size());
    std::size_t count = 0;
    const std::uint64_t row = item * words_per_row_;
    for (const Range& range : by_begin_) {
      ranges_[count] = range;
      count += are_neighbours(row, range.item) ? 1 : 0;
    }
    ranges_.resize(count);
    return;
  }
  ranges_.clear();
  neighbours_.for_each(item, [&](std::uint32_t other) {
    const std::uint64_t offset = offsets_[other];
    if (offset != nowhere) ranges_.push_back({offset, offset + shape_.items[other].size, other});
  });
  std::sort(ranges_.begin(), ranges_.end(), by_begin);
}

const std::vector<Placed::End>& Placed::ends() {
  if (is_in_order_) {
    ends_.resize(by_end_.size());
    std::size_t count = 0;
    const std::uint64_t row = looking_ * words_per_row_;
    for (const End& end : by_end_) {
      ends_[count] = end;
      count += are_neighbours(row, end.item) ? 1 : 0;
    }
    ends_.resize(count);
    return ends_;
  }
  ends_.clear();
  for (const Range& range : ranges_) ends_.push_back({range.end, range.item});
  std::sort(ends_.begin(), ends_.end(), by_end);
  return ends_;
}

}  // namespace swapmm::planning::packing
