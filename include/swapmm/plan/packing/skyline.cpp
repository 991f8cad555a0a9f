// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/packing/skyline.hpp>

#include <algorithm>
#include <bit>

namespace swapmm::planning::packing {

Waiting::Waiting(const Shape& shape) : shape_(shape), position_(shape.size(), no_item) {
  for (std::uint32_t item = 0; item < shape.size(); ++item) {
    if (shape.items[item].size > 0) by_first_.push_back(item);
  }
  std::stable_sort(by_first_.begin(), by_first_.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return shape.items[a].first < shape.items[b].first; });
  for (std::uint32_t k = 0; k < by_first_.size(); ++k) position_[by_first_[k]] = k;
  leaves_ = std::bit_ceil(std::max<std::size_t>(by_first_.size(), 1));
}

void Waiting::begin(const std::vector<double>& urgency) {
  nodes_.assign(2 * leaves_, {});
  for (std::size_t k = 0; k < by_first_.size(); ++k) {
    const Shape::Item& item = shape_.items[by_first_[k]];
    nodes_[leaves_ + k] = {item.first + item.count, urgency[by_first_[k]]};
  }
  for (std::size_t node = leaves_; node-- > 1;) renew(node);
}

void Waiting::renew(std::size_t node) {
  const Node& left = nodes_[2 * node];
  const Node& right = nodes_[2 * node + 1];
  nodes_[node] = {std::min(left.end, right.end), std::max(left.urgency, right.urgency)};
}

void Waiting::remove(std::uint32_t item) {
  std::size_t node = leaves_ + position_[item];
  nodes_[node] = {};
  for (node /= 2; node >= 1; node /= 2) renew(node);
}

std::uint32_t Waiting::most_urgent(std::uint32_t first, std::uint32_t end) {
  constexpr std::uint32_t most_looks = 400;
  Query query;
  query.looks_left = most_looks;
  ask(query, first, std::min(end, shape_.sections), end);
  if (end > shape_.sections) ask(query, 0, end - shape_.sections, end - shape_.sections);
  return query.found;
}

void Waiting::ask(Query& query, std::uint32_t first, std::uint32_t behind, std::uint32_t end) const {
  const auto position_of = [&](std::uint32_t section) {
    const auto at = std::lower_bound(by_first_.begin(), by_first_.end(), section,
                                     [&](std::uint32_t item, std::uint32_t s) { return shape_.items[item].first < s; });
    return static_cast<std::uint32_t>(at - by_first_.begin());
  };
  query.low = position_of(first);
  query.high = position_of(behind);
  query.end = end;
  look(query, 1, 0, static_cast<std::uint32_t>(leaves_));
}

void Waiting::look(Query& query, std::size_t node, std::uint32_t begin, std::uint32_t count) const {
  if (begin >= query.high || begin + count <= query.low || query.looks_left == 0) return;
  if (nodes_[node].end > query.end || nodes_[node].urgency <= query.urgency) return;
  --query.looks_left;
  if (node >= leaves_) {
    query.urgency = nodes_[node].urgency;
    query.found = by_first_[begin];
    return;
  }
  const std::uint32_t half = count / 2;
  // The more promising half first; the other one then rarely needs to be examined.
  if (nodes_[2 * node].urgency >= nodes_[2 * node + 1].urgency) {
    look(query, 2 * node, begin, half);
    look(query, 2 * node + 1, begin + half, half);
  } else {
    look(query, 2 * node + 1, begin + half, half);
    look(query, 2 * node, begin, half);
  }
}

const Offsets& Skyline::pack(const std::vector<double>& urgency) {
  offsets_.assign(shape_.size(), 0);
  stretches_.assign(shape_.sections, {});
  by_height_ = {};
  left_ = 0;
  for (const Shape::Item& item : shape_.items) left_ += item.size > 0 ? 1 : 0;
  waiting_.begin(urgency);
  place_those_in_all_sections(urgency);
  stretches_[0] = {shape_.sections, foundation_, 0, 0};
  queue(0);
  while (left_ > 0) {
    const std::uint32_t begin = lowest();
    const std::uint32_t item = most_urgent_within(begin);
    if (item == Waiting::no_item) {
      give_up(begin);
    } else {
      place(begin, item);
    }
  }
  return offsets_;
}

/// Places the items of all sections side by side at the bottom. They fit nowhere else.
void Skyline::place_those_in_all_sections(const std::vector<double>& urgency) {
  std::vector<std::uint32_t> all;
  for (std::uint32_t item = 0; item < shape_.size(); ++item) {
    if (shape_.items[item].size > 0 && shape_.items[item].count == shape_.sections) all.push_back(item);
  }
  std::stable_sort(all.begin(), all.end(), [&](std::uint32_t a, std::uint32_t b) { return urgency[a] > urgency[b]; });
  foundation_ = 0;
  for (const std::uint32_t item : all) {
    offsets_[item] = shape_.allowed(foundation_, shape_.items[item].size);
    foundation_ = offsets_[item] + shape_.items[item].size;
    waiting_.remove(item);
    --left_;
  }
}

std::uint32_t Skyline::lowest() {
  for (;;) {
    const auto [height, begin] = by_height_.top();
    by_height_.pop();
    if (stretches_[begin].length > 0 && stretches_[begin].height == height) return begin;
  }
}

std::uint32_t Skyline::most_urgent_within(std::uint32_t begin) {
  const std::uint32_t length = stretches_[begin].length;
  if (length == shape_.sections) return waiting_.most_urgent(0, 2 * shape_.sections);
  return waiting_.most_urgent(begin, begin + length);
}

/// Replaces a stretch by the part before the item, the item's sections, and the part after it.
void Skyline::place(std::uint32_t begin, std::uint32_t item) {
  const Shape::Item& own = shape_.items[item];
  const std::uint32_t n = shape_.sections;
  if (stretches_[begin].length == n) {  // a full circle may begin anywhere
    const std::uint64_t height = stretches_[begin].height;
    stretches_[begin] = {};
    begin = own.first;
    stretches_[begin] = {n, height, begin, begin};
  }
  const Stretch whole = stretches_[begin];
  const std::uint64_t offset = shape_.allowed(whole.height, own.size);
  offsets_[item] = offset;
  waiting_.remove(item);
  --left_;

  const std::uint32_t in_front = (own.first + n - begin) % n;
  const std::uint32_t rest = whole.length - in_front - own.count;
  std::uint32_t at = begin;
  if (in_front > 0) {
    stretches_[begin].length = in_front;
    queue(begin);
    at = insert_behind(begin, own.first, own.count, offset + own.size);
  } else {
    stretches_[begin].length = own.count;
    stretches_[begin].height = offset + own.size;
    queue(begin);
  }
  if (rest > 0) insert_behind(at, (own.first + own.count) % n, rest, whole.height);
  join(at);
}

std::uint32_t Skyline::insert_behind(std::uint32_t before, std::uint32_t begin, std::uint32_t length,
                                     std::uint64_t height) {
  const std::uint32_t behind = stretches_[before].behind;
  stretches_[begin] = {length, height, before, behind};
  stretches_[before].behind = begin;
  stretches_[behind].before = begin;
  queue(begin);
  return begin;
}

void Skyline::give_up(std::uint32_t begin) {
  Stretch& stretch = stretches_[begin];  // not the whole circle, because every item fits there
  stretch.height = std::min(stretches_[stretch.before].height, stretches_[stretch.behind].height);
  queue(begin);
  join(begin);
}

/// Merges neighbours of the same height into one stretch.
void Skyline::join(std::uint32_t begin) {
  const auto join_two = [&](std::uint32_t first, std::uint32_t second) {
    if (first == second || stretches_[first].height != stretches_[second].height) return;
    const Stretch gone = stretches_[second];
    stretches_[second].length = 0;
    stretches_[first].length += gone.length;
    stretches_[first].behind = gone.behind;  // it is its own neighbour if there were two
    stretches_[gone.behind].before = first;
  };
  const std::uint32_t before = stretches_[begin].before;
  join_two(begin, stretches_[begin].behind);
  if (stretches_[begin].behind != begin) join_two(before, begin);
}

std::vector<double> urgent_by_length(const Shape& shape) {
  std::uint32_t longest = 1;
  std::uint64_t largest = 1;
  for (const Shape::Item& item : shape.items) {
    longest = std::max(longest, item.length);
    largest = std::max(largest, item.size);
  }
  std::vector<double> urgency;
  urgency.reserve(shape.size());
  for (const Shape::Item& item : shape.items) {
    constexpr double only_among_equals = 1e-9;
    urgency.push_back(static_cast<double>(item.length) / longest +
                      only_among_equals * (static_cast<double>(item.size) / static_cast<double>(largest)));
  }
  return urgency;
}

}  // namespace swapmm::planning::packing
