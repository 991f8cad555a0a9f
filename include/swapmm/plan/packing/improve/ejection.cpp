// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/packing/improve/ejection.hpp>

#include <algorithm>
#include <limits>

namespace swapmm::planning::packing {
namespace {

constexpr double weight_factor = 1.1;
constexpr double highest_weight = 1e100;  // above this, all weights start again, before sums of them lose precision

}  // namespace

Ejection::Ejection(const Shape& shape) : shape_(shape), placed_(shape), weights_(shape.size()) {
  for (std::uint32_t item = 0; item < shape.size(); ++item) weights_[item] = first_weight(item);
}

double Ejection::first_weight(std::uint32_t item) const {
  const Shape::Item& own = shape_.items[item];
  return static_cast<double>(own.size) * own.count + 1;
}

void Ejection::push(std::uint32_t item) {
  unplaced_.push_back(item);
  std::push_heap(unplaced_.begin(), unplaced_.end(), [&](auto a, auto b) { return is_less_urgent(a, b); });
}

std::uint32_t Ejection::pop() {
  std::pop_heap(unplaced_.begin(), unplaced_.end(), [&](auto a, auto b) { return is_less_urgent(a, b); });
  const std::uint32_t item = unplaced_.back();
  unplaced_.pop_back();
  return item;
}

bool Ejection::run(const Offsets& start, std::uint64_t capacity, std::uint64_t steps, Budget& budget) {
  capacity_ = capacity;
  placed_.clear();
  unplaced_.clear();
  for (std::uint32_t item = 0; item < shape_.size(); ++item) {
    const std::uint64_t size = shape_.items[item].size;
    if (size == 0) {
      placed_.place(item, 0);
    } else if (start[item] != nowhere && start[item] + size <= capacity) {
      placed_.place(item, start[item]);
    } else {
      push(item);
    }
  }
  for (; !unplaced_.empty() && steps > 0 && !budget.is_spent(); --steps) {
    const std::uint32_t item = pop();
    const std::uint64_t size = shape_.items[item].size;
    placed_.look(item);
    budget.spend(placed_.work() + 50);
    std::uint64_t place = free_place(size);
    if (place == nowhere) {
      place = cheapest_place(size);
      if (place == nowhere) return false;  // larger than the capacity
      eject(place, place + size);
    }
    placed_.place(item, place);
  }
  return unplaced_.empty();
}

std::uint64_t Ejection::free_place(std::uint64_t size) const {
  std::uint64_t top = 0;
  for (const Placed::Range& range : placed_.ranges()) {
    if (range.begin > top) {
      const std::uint64_t place = shape_.allowed(top, size);
      if (place + size <= range.begin) return place + size <= capacity_ ? place : nowhere;
    }
    top = std::max(top, range.end);
  }
  const std::uint64_t place = shape_.allowed(top, size);
  return place + size <= capacity_ ? place : nowhere;
}

std::uint64_t Ejection::cheapest_place(std::uint64_t size) {
  const std::vector<Placed::Range>& ranges = placed_.ranges();
  const std::vector<Placed::End>& ends = placed_.ends();
  std::uint64_t best = nowhere;
  double best_cost = std::numeric_limits<double>::infinity();
  // The cost of a place: the weights of the items that begin before its end, minus those of the items that end before
  // its start. Places must be considered in ascending order.
  struct Sweep {
    std::size_t begun = 0;
    std::size_t ended = 0;
    double sum = 0;
  };
  const auto consider = [&](std::uint64_t place, Sweep& sweep) {
    place = shape_.allowed(place, size);
    if (place + size > capacity_) return;
    for (; sweep.begun < ranges.size() && ranges[sweep.begun].begin < place + size; ++sweep.begun) {
      sweep.sum += weights_[ranges[sweep.begun].item];
    }
    for (; sweep.ended < ends.size() && ends[sweep.ended].at <= place; ++sweep.ended) {
      sweep.sum -= weights_[ends[sweep.ended].item];
    }
    if (sweep.sum >= best_cost) return;
    best = place;
    best_cost = sweep.sum;
  };
  Sweep above;  // just above an item, or at the bottom
  consider(0, above);
  for (const Placed::End& end : ends) consider(end.at, above);
  Sweep below;  // just below an item, or at the top
  for (const Placed::Range& range : placed_.ranges()) {
    if (range.begin >= size) consider(range.begin - size, below);
  }
  if (capacity_ >= size) consider(capacity_ - size, below);
  return best;
}

void Ejection::eject(std::uint64_t begin, std::uint64_t end) {
  bool is_too_high = false;
  for (const Placed::Range& range : placed_.ranges()) {
    if (range.begin >= end || begin >= range.end) continue;
    placed_.remove(range.item);
    weights_[range.item] *= weight_factor;
    is_too_high = is_too_high || weights_[range.item] > highest_weight;
    push(range.item);
  }
  if (!is_too_high) return;
  for (std::uint32_t item = 0; item < shape_.size(); ++item) weights_[item] = first_weight(item);
  std::make_heap(unplaced_.begin(), unplaced_.end(), [&](auto a, auto b) { return is_less_urgent(a, b); });
}

}  // namespace swapmm::planning::packing
