// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/search/places/place_board.hpp>

#include <algorithm>
#include <cstddef>

namespace swapmm::planning {

PlaceBoard::PlaceBoard(std::uint32_t operations, std::uint64_t budget)
    : operations_(operations), budget_(budget), load_(std::vector<std::int64_t>(operations)) {}

void PlaceBoard::count(const Place& place, bool comes) {
  if (place.slots == 0) return;
  const auto bytes = static_cast<std::int64_t>(place.end - place.begin);
  load_.add(place.start, place.start + place.slots, comes ? bytes : -bytes);
}

void PlaceBoard::add_all(const std::vector<Place>& places) {
  for (const Place& place : places) count(place, true);
  places_.insert(places_.end(), places.begin(), places.end());
  std::stable_sort(places_.begin(), places_.end(), [](const Place& a, const Place& b) { return a.begin < b.begin; });
}

void PlaceBoard::add(const Place& place) {
  const auto above = std::upper_bound(places_.begin(), places_.end(), place.begin,
                                      [](std::uint64_t begin, const Place& other) { return begin < other.begin; });
  places_.insert(above, place);
  count(place, true);
}

void PlaceBoard::remove(std::uint64_t begin, GuestId guest) {
  auto place = std::lower_bound(places_.begin(), places_.end(), begin,
                                [](const Place& other, std::uint64_t wanted) { return other.begin < wanted; });
  while (place->guest != guest) ++place;
  count(*place, false);
  places_.erase(place);
}

bool PlaceBoard::has_bytes(std::uint32_t start, std::uint32_t slots, std::uint64_t size) const {
  if (slots == 0) return size <= budget_;
  const auto there = static_cast<std::uint64_t>(load_.most(start, start + slots));
  return there <= budget_ && size <= budget_ - there;
}

void PlaceBoard::look_around(std::uint32_t start, std::uint32_t slots) {
  in_the_way_.clear();
  for (const Place& place : places_) {
    // The distance from the start of the range to the start of the place, around the circle.
    const std::uint32_t until = place.start >= start ? place.start - start : place.start + operations_ - start;
    if (until < slots || (until == 0 ? 0 : operations_ - until) < place.slots) in_the_way_.push_back(place);
  }
}

bool PlaceBoard::is_free(std::uint64_t begin, std::uint64_t size) const {
  return std::none_of(in_the_way_.begin(), in_the_way_.end(),
                      [&](const Place& place) { return place.begin < begin + size && begin < place.end; });
}

std::uint64_t PlaceBoard::free_place(std::uint64_t size) const {
  std::uint64_t best = no_place;
  std::uint64_t smallest = no_place;
  std::uint64_t top = 0;
  const auto consider = [&](std::uint64_t end) {
    if (end < top + size || end - top >= smallest) return;
    smallest = end - top;
    best = top;
  };
  for (const Place& place : in_the_way_) {
    consider(place.begin);
    top = std::max(top, place.end);
  }
  consider(budget_);
  return best;
}

std::uint64_t PlaceBoard::cheapest_place(std::uint64_t size, std::span<const double> weights) const {
  std::uint64_t best = no_place;
  double least = std::numeric_limits<double>::infinity();
  std::vector<Place> by_end(in_the_way_);
  std::sort(by_end.begin(), by_end.end(), [](const Place& a, const Place& b) { return a.end < b.end; });
  // The weight of the guests that begin before the end of a place, minus the weight of those that end before its start.
  // Places must be considered in ascending order.
  struct Sweep {
    std::size_t begun = 0;
    std::size_t ended = 0;
    double weight = 0;
  };
  const auto consider = [&](std::uint64_t place, Sweep& sweep) {
    if (place + size > budget_) return;
    for (; sweep.begun < in_the_way_.size() && in_the_way_[sweep.begun].begin < place + size; ++sweep.begun) {
      sweep.weight += weights[in_the_way_[sweep.begun].guest];
    }
    for (; sweep.ended < by_end.size() && by_end[sweep.ended].end <= place; ++sweep.ended) {
      sweep.weight -= weights[by_end[sweep.ended].guest];
    }
    if (sweep.weight >= least) return;
    least = sweep.weight;
    best = place;
  };
  Sweep above;
  consider(0, above);
  for (const Place& place : by_end) consider(place.end, above);
  Sweep below;
  for (const Place& place : in_the_way_) {
    if (place.begin >= size) consider(place.begin - size, below);
  }
  if (budget_ >= size) consider(budget_ - size, below);
  return best;
}

}  // namespace swapmm::planning
