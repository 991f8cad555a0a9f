// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/packing_board.hpp>

#include <algorithm>
#include <bit>

namespace swapmm::packing {

Board::Board(const Shape& shape) : shape_(shape), nodes_(2 * std::size_t{std::bit_ceil(shape.sections)}) {}

void Board::clear() {
  for (Node& node : nodes_) {
    node.in_all.clear();
    node.in_any.clear();
  }
}

template <class Visit>
void Board::for_each_span(const Shape::Item& item, Visit&& visit) const {
  const std::uint64_t end = std::uint64_t{item.first} + item.count;
  if (end <= shape_.sections) {
    visit(Span{item.first, static_cast<std::uint32_t>(end)});
  } else if (item.count == shape_.sections) {
    visit(Span{0, shape_.sections});
  } else {
    visit(Span{item.first, shape_.sections});
    visit(Span{0, static_cast<std::uint32_t>(end - shape_.sections)});
  }
}

void Board::add(Ranges& ranges, Range range) {
  const auto first = std::lower_bound(ranges.begin(), ranges.end(), range.begin,
                                      [](const Range& known, std::uint64_t begin) { return known.end < begin; });
  auto last = first;
  for (; last != ranges.end() && last->begin <= range.end; ++last) {
    range.begin = std::min(range.begin, last->begin);
    range.end = std::max(range.end, last->end);
  }
  if (first == last) {
    ranges.insert(first, range);
  } else {
    *first = range;
    ranges.erase(first + 1, last);
  }
}

void Board::insert(std::uint32_t node, Span of_node, Span span, Range range) {
  add(nodes_[node].in_any, range);
  if (span.begin <= of_node.begin && of_node.end <= span.end) {
    add(nodes_[node].in_all, range);
    return;
  }
  const std::uint32_t middle = of_node.begin + (of_node.end - of_node.begin) / 2;
  if (span.begin < middle) insert(2 * node, {of_node.begin, middle}, span, range);
  if (span.end > middle) insert(2 * node + 1, {middle, of_node.end}, span, range);
}

void Board::gather(std::uint32_t node, Span of_node, Span span) {
  const bool is_within = span.begin <= of_node.begin && of_node.end <= span.end;
  const Ranges& ranges = is_within ? nodes_[node].in_any : nodes_[node].in_all;
  taken_.insert(taken_.end(), ranges.begin(), ranges.end());
  if (is_within) return;
  const std::uint32_t middle = of_node.begin + (of_node.end - of_node.begin) / 2;
  if (span.begin < middle) gather(2 * node, {of_node.begin, middle}, span);
  if (span.end > middle) gather(2 * node + 1, {middle, of_node.end}, span);
}

void Board::gather_for(const Shape::Item& item) {
  taken_.clear();
  for_each_span(item, [&](Span span) { gather(1, {0, std::bit_ceil(shape_.sections)}, span); });
  looks_ += taken_.size();
  std::sort(taken_.begin(), taken_.end(), [](const Range& a, const Range& b) { return a.begin < b.begin; });
}

void Board::place(std::uint32_t item, std::uint64_t offset) {
  const Shape::Item& own = shape_.items[item];
  if (own.size == 0) return;  // takes no room: nothing can be in its way
  for_each_span(own, [&](Span span) {
    insert(1, {0, std::bit_ceil(shape_.sections)}, span, {offset, offset + own.size});
  });
}

bool Board::is_free(std::uint32_t item, std::uint64_t offset) {
  const Shape::Item& own = shape_.items[item];
  if (own.size == 0) return true;
  gather_for(own);
  return std::none_of(taken_.begin(), taken_.end(),
                      [&](const Range& range) { return range.begin < offset + own.size && offset < range.end; });
}

std::uint64_t Board::fit(std::uint32_t item, Fit fit) {
  const Shape::Item& own = shape_.items[item];
  if (own.size == 0) return 0;  // never inside another item's bytes
  gather_for(own);
  std::uint64_t best = nowhere;
  std::uint64_t best_gap = nowhere;
  std::uint64_t top = 0;
  for (const Range& range : taken_) {
    if (range.begin > top && range.begin - top < best_gap) {
      const std::uint64_t place = shape_.allowed(top, own.size);
      if (place + own.size <= range.begin) {
        if (fit == Fit::first) return place;
        best = place;
        best_gap = range.begin - top;
      }
    }
    top = std::max(top, range.end);
  }
  return best == nowhere ? shape_.allowed(top, own.size) : best;
}

}  // namespace swapmm::packing
