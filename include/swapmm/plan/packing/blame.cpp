// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/packing/blame.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace swapmm::planning::packing {

Blame::Blame(const Shape& shape, std::uint64_t capacity)
    : shape_(shape),
      capacity_(capacity),
      board_(shape),
      skyline_(shape),
      order_(shape.size()),
      best_room_(std::numeric_limits<double>::infinity()) {}

std::vector<double> Blame::by_room() const {
  std::vector<double> urgency;
  urgency.reserve(shape_.size());
  for (const Shape::Item& item : shape_.items) {
    constexpr double about_the_most = 60;  // about the logarithm of the largest possible room
    urgency.push_back(std::log(static_cast<double>(item.size) * item.length + 1) / about_the_most);
  }
  return urgency;
}

std::vector<double> Blame::by_place(const Offsets& offsets) const {
  std::vector<double> urgency;
  urgency.reserve(shape_.size());
  for (const std::uint64_t offset : offsets) {
    const double part = static_cast<double>(offset) / static_cast<double>(std::max<std::uint64_t>(capacity_, 1));
    urgency.push_back(offset == nowhere ? 1 : 1 - part);
  }
  return urgency;
}

bool Blame::round() {
  std::iota(order_.begin(), order_.end(), 0U);
  std::sort(order_.begin(), order_.end(), [&](std::uint32_t a, std::uint32_t b) {
    return urgency_[a] != urgency_[b] ? urgency_[a] > urgency_[b] : a < b;
  });
  board_.clear();
  offsets_.assign(shape_.size(), nowhere);
  double room = 0;
  for (const std::uint32_t i : order_) {
    const Shape::Item& item = shape_.items[i];
    const std::uint64_t offset = item.size == 0 ? 0 : board_.fit(i, Board::Fit::first);
    if (offset == nowhere || item.size > capacity_ || offset > capacity_ - item.size) {
      room += static_cast<double>(item.size) * item.count;
      blame(i);
      continue;
    }
    offsets_[i] = offset;
    board_.place(i, offset);
  }
  return keep_if_best(room);
}

bool Blame::round_by_skyline() {
  offsets_ = skyline_.pack(urgency_);
  double room = 0;
  for (std::uint32_t i = 0; i < shape_.size(); ++i) {
    const Shape::Item& item = shape_.items[i];
    if (item.size == 0 || (item.size <= capacity_ && offsets_[i] <= capacity_ - item.size)) continue;
    room += static_cast<double>(item.size) * item.count;
    blame(i);
    offsets_[i] = nowhere;
  }
  return keep_if_best(room);
}

void Blame::blame(std::uint32_t item) {
  constexpr double least_push = 0.02;
  constexpr double random_push = 0.05;
  urgency_[item] += least_push + random_push * static_cast<double>(random_() >> 11U) * 0x1p-53;
}

bool Blame::keep_if_best(double room) {
  if (room < best_room_) {
    best_room_ = room;
    best_ = offsets_;
  }
  return room == 0;
}

}  // namespace swapmm::planning::packing
