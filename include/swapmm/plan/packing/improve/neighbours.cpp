// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/packing/improve/neighbours.hpp>

#include <algorithm>

namespace swapmm::planning::packing {

Neighbours::Neighbours(const Shape& shape) : shape_(shape), begin_(shape.sections + std::size_t{2}) {
  std::uint64_t presences = 0;
  for (std::uint32_t i = 0; i < shape.size(); ++i) {
    if (shape.items[i].size == 0) continue;
    by_first_.push_back(i);
    ++begin_[shape.items[i].first + 1];
    presences += shape.items[i].count;
  }
  for (std::size_t k = 1; k < begin_.size(); ++k) begin_[k] += begin_[k - 1];
  std::stable_sort(by_first_.begin(), by_first_.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return shape.items[a].first < shape.items[b].first; });

  // Marks are so far apart that, on average, an item is at a few of them.
  constexpr std::uint64_t marks_per_item = 8;
  stride_ = static_cast<std::uint32_t>(presences / (marks_per_item * (by_first_.size() + 1)) + 1);
  const std::uint32_t marks = (shape.sections + stride_ - 1) / stride_;
  mark_begin_.resize(marks + std::size_t{1});
  const auto for_each_mark = [&](const Shape::Item& item, auto&& visit) {
    const auto within = [&](std::uint64_t from, std::uint64_t end) {
      for (std::uint64_t mark = (from + stride_ - 1) / stride_; mark * stride_ < end; ++mark) visit(mark);
    };
    const std::uint64_t end = std::uint64_t{item.first} + item.count;
    within(item.first, std::min<std::uint64_t>(end, shape.sections));
    if (end > shape.sections) within(0, end - shape.sections);
  };
  for (const std::uint32_t i : by_first_) {
    for_each_mark(shape.items[i], [&](std::uint64_t mark) { ++mark_begin_[mark + 1]; });
  }
  for (std::size_t k = 1; k < mark_begin_.size(); ++k) mark_begin_[k] += mark_begin_[k - 1];
  at_marks_.resize(mark_begin_.back());
  std::vector<std::uint32_t> next(mark_begin_);
  for (const std::uint32_t i : by_first_) {
    for_each_mark(shape.items[i], [&](std::uint64_t mark) { at_marks_[next[mark]++] = i; });
  }
}

}  // namespace swapmm::planning::packing
