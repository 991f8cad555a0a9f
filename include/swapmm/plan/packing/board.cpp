// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/packing/board.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>

namespace swapmm::planning::packing {
namespace {

/// The first of ascending ranges that ends above `place`; usually one of the next ones.
template <class Range>
const Range* first_above(const Range* next, const Range* end, std::uint64_t place) {
  std::ptrdiff_t step = 1;
  while (end - next > step && next[step - 1].end <= place) {
    next += step;
    step *= 2;
  }
  return std::partition_point(next, next + std::min(step, end - next),
                              [&](const Range& range) { return range.end <= place; });
}

}  // namespace

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
  if (!ranges.empty()) lists_.push_back({ranges.data(), ranges.data() + ranges.size()});
  if (is_within) return;
  const std::uint32_t middle = of_node.begin + (of_node.end - of_node.begin) / 2;
  if (span.begin < middle) gather(2 * node, {of_node.begin, middle}, span);
  if (span.end > middle) gather(2 * node + 1, {middle, of_node.end}, span);
}

void Board::gather_for(const Shape::Item& item) {
  lists_.clear();
  for_each_span(item, [&](Span span) { gather(1, {0, std::bit_ceil(shape_.sections)}, span); });
}

// Each list in turn moves the place up until none of its ranges is in the way. The search ends when all lists agree.
// Ranges that other lists cover are skipped in doubling steps.
std::uint64_t Board::next_free(std::uint64_t from, std::uint64_t size) {
  std::uint64_t place = shape_.allowed(from, size);
  std::size_t agree = 0;
  for (std::size_t turn = 0; agree < lists_.size(); turn = turn + 1 == lists_.size() ? 0 : turn + 1) {
    List& list = lists_[turn];
    const std::uint64_t before = place;
    for (;;) {
      ++looks_;
      list.next = first_above(list.next, list.end, place);
      if (list.next == list.end || list.next->begin >= place + size) break;
      place = shape_.allowed(list.next->end, size);
    }
    agree = place == before ? agree + 1 : 1;
  }
  return place;
}

void Board::place(std::uint32_t item, std::uint64_t offset) {
  const Shape::Item& own = shape_.items[item];
  if (own.size == 0) return;  // takes no room, so nothing can be in its way
  for_each_span(own, [&](Span span) {
    insert(1, {0, std::bit_ceil(shape_.sections)}, span, {offset, offset + own.size});
  });
}

bool Board::is_free(std::uint32_t item, std::uint64_t offset) {
  const Shape::Item& own = shape_.items[item];
  if (own.size == 0) return true;
  gather_for(own);
  looks_ += lists_.size();
  return std::all_of(lists_.begin(), lists_.end(), [&](const List& list) {
    const Range* const next = first_above(list.next, list.end, offset);
    return next == list.end || next->begin >= offset + own.size;
  });
}

std::uint64_t Board::fit(std::uint32_t item, Fit fit) {
  const Shape::Item& own = shape_.items[item];
  if (own.size == 0) return 0;  // never inside another item's bytes
  gather_for(own);
  std::uint64_t best = nowhere;
  std::uint64_t best_gap = nowhere;
  for (std::uint64_t from = 0;;) {
    const std::uint64_t place = next_free(from, own.size);
    if (fit == Fit::first) return place;
    std::uint64_t gap_end = nowhere;
    for (const List& list : lists_) {
      if (list.next != list.end) gap_end = std::min(gap_end, list.next->begin);
    }
    if (gap_end == nowhere) return best == nowhere ? place : best;
    if (gap_end - place < best_gap) {
      best = place;
      best_gap = gap_end - place;
    }
    if (best_gap == own.size) return best;  // no gap is smaller
    from = gap_end;
  }
}

}  // namespace swapmm::planning::packing
