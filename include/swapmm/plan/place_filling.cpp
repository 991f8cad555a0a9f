// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/place_filling.hpp>

#include <algorithm>
#include <iterator>
#include <limits>

#include <swapmm/plan/stay_facts.hpp>

namespace swapmm {
namespace {

constexpr std::uint64_t no_place = std::numeric_limits<std::uint64_t>::max();

}  // namespace

PlaceFilling::PlaceFilling(OverlapLedger& ledger, std::span<const Bytes> offsets)
    : ledger_(ledger), slots_(ledger.planning.operations) {
  for (std::size_t t = 0; t < ledger.planning.sizes.size(); ++t) {
    for (Guest& guest : guests_of(id_at<TensorId>(t))) {
      const std::uint64_t offset = offsets[guests_.size()].value;
      if (guest.size <= ledger.planning.budget && offset <= ledger.planning.budget - guest.size) guest.offset = offset;
      guests_.push_back(guest);
    }
  }
}

/// As the decisions are now, without places.
std::vector<PlaceFilling::Guest> PlaceFilling::guests_of(TensorId tensor) const {
  std::vector<Guest> guests;
  const std::uint64_t size = ledger_.planning.sizes[index(tensor)];
  for (const Stay& stay : stays_of(ledger_, tensor)) {
    std::vector<WriteBack> write_backs;
    const StayFacts facts = find_stay_facts(ledger_.planning, stay, Pace::overlapped, write_backs);
    const std::uint32_t slots = packed_length(ledger_.planning, stay, facts);
    guests.push_back({tensor, stay.start, slots, size, size == 0 ? 0 : no_place});
    guests.back().weight = guests.back().area();
  }
  return guests;
}

bool PlaceFilling::share_a_slot(const Guest& a, const Guest& b) const {
  const auto from = [&](std::uint32_t start, std::uint32_t slot) {
    return slot >= start ? slot - start : slot + slots_ - start;
  };
  return from(a.start, b.start) < a.slots || from(b.start, a.start) < b.slots;
}

bool PlaceFilling::try_to_stay(std::uint32_t absence, std::size_t moves) {
  Absence& decision = ledger_.absences[absence];
  decision.stays = true;
  if (rehouse(decision.tensor, moves)) return true;
  decision.stays = false;
  return false;
}

bool PlaceFilling::try_to_move(std::uint32_t absence, std::uint32_t leaves, std::uint32_t returns, std::size_t moves) {
  Absence& decision = ledger_.absences[absence];
  const Absence before = decision;
  decision.leaves = decision.gone = leaves;
  decision.returns = decision.queued = returns;
  if (rehouse(decision.tensor, moves)) return true;
  decision = before;
  return false;
}

bool PlaceFilling::house_everybody(std::size_t moves, std::uint64_t most_looks) {
  std::vector<Guest> without;
  std::copy_if(guests_.begin(), guests_.end(), std::back_inserter(without),
               [](const Guest& guest) { return guest.offset == no_place; });
  std::sort(without.begin(), without.end(), [](const Guest& a, const Guest& b) { return a.weight > b.weight; });
  constexpr std::size_t more = 10;  // for what cannot but have a place
  return std::all_of(without.begin(), without.end(), [&](const Guest& guest) {
    if (looks_ > most_looks) return false;
    if (rehouse(guest.tensor, moves)) return true;
    for (Absence& absence : ledger_.absences) {
      if (absence.tensor != guest.tensor || !absence.stays) continue;
      absence.stays = false;
      absence.leaves = absence.gone = absence.first;
      absence.returns = absence.queued = absence.end;
    }
    return rehouse(guest.tensor, more * moves);
  });
}

/// The stays of a tensor after its decisions have changed. False if there are no places; then nothing has changed.
bool PlaceFilling::rehouse(TensorId tensor, std::size_t moves) {
  const auto first = std::lower_bound(guests_.begin(), guests_.end(), tensor,
                                      [](const Guest& guest, TensorId id) { return guest.tensor < id; });
  const auto last = std::find_if(first, guests_.end(), [&](const Guest& guest) { return guest.tensor != tensor; });
  const auto at = static_cast<std::uint32_t>(first - guests_.begin());
  const std::vector<Guest> before(first, last);
  const std::vector<Guest> after = guests_of(tensor);
  const auto exchange = [&](std::size_t gone, const std::vector<Guest>& come) {
    guests_.erase(guests_.begin() + at, guests_.begin() + at + static_cast<std::ptrdiff_t>(gone));
    guests_.insert(guests_.begin() + at, come.begin(), come.end());
  };
  exchange(before.size(), after);

  moved_.clear();
  std::vector<std::uint32_t> homeless;
  for (std::uint32_t g = at; g < at + after.size(); ++g) {
    // At its old place, if nobody else is there.
    look_around(guests_[g]);
    for (const Guest& old : before) {
      const bool was_there = old.offset != no_place && share_a_slot(old, guests_[g]);
      if (was_there && is_free(old.offset, old.size)) guests_[g].offset = old.offset;
    }
    if (guests_[g].offset == no_place) homeless.push_back(g);
  }
  const bool is_housed = house(std::move(homeless), moves);
  for (const auto& [guest, place] : moved_) guests_[guest].weight = guests_[guest].area();
  if (is_housed) return true;
  // Backwards, for some were moved more than once.
  for (auto move = moved_.rbegin(); move != moved_.rend(); ++move) guests_[move->first].offset = move->second;
  exchange(after.size(), before);
  return false;
}

/// The heaviest first.
bool PlaceFilling::house(std::vector<std::uint32_t> homeless, std::size_t moves) {
  constexpr double dearer_each_time = 1.2;
  while (!homeless.empty()) {
    const auto heaviest = std::max_element(homeless.begin(), homeless.end(), [&](std::uint32_t a, std::uint32_t b) {
      return guests_[a].weight < guests_[b].weight;
    });
    Guest& guest = guests_[*heaviest];
    homeless.erase(heaviest);
    look_around(guest);
    guest.offset = free_place(guest.size);
    if (guest.offset != no_place) continue;
    guest.offset = moves > 0 ? cheapest_place(guest.size) : no_place;
    if (guest.offset == no_place) return false;
    --moves;
    for (const Range& range : in_the_way_) {
      if (range.begin >= guest.offset + guest.size || range.end <= guest.offset) continue;
      moved_.emplace_back(range.guest, range.begin);
      guests_[range.guest].offset = no_place;
      guests_[range.guest].weight *= dearer_each_time;
      homeless.push_back(range.guest);
    }
  }
  return true;
}

void PlaceFilling::look_around(const Guest& guest) {
  looks_ += guests_.size();
  in_the_way_.clear();
  for (std::uint32_t g = 0; g < guests_.size(); ++g) {
    const Guest& other = guests_[g];
    if (other.size == 0 || other.offset == no_place || &other == &guest || !share_a_slot(guest, other)) continue;
    in_the_way_.push_back({other.offset, other.offset + other.size, g});
  }
  std::sort(in_the_way_.begin(), in_the_way_.end(), [](const Range& a, const Range& b) { return a.begin < b.begin; });
}

bool PlaceFilling::is_free(std::uint64_t place, std::uint64_t size) const {
  return std::none_of(in_the_way_.begin(), in_the_way_.end(),
                      [&](const Range& range) { return range.begin < place + size && place < range.end; });
}

/// In the smallest gap that takes it.
std::uint64_t PlaceFilling::free_place(std::uint64_t size) const {
  std::uint64_t best = no_place;
  std::uint64_t smallest = no_place;
  std::uint64_t top = 0;
  const auto consider = [&](std::uint64_t end) {
    if (end < top + size || end - top >= smallest) return;
    smallest = end - top;
    best = top;
  };
  for (const Range& range : in_the_way_) {
    consider(range.begin);
    top = std::max(top, range.end);
  }
  consider(ledger_.planning.budget);
  return best;
}

/// Where those weigh least that are in the way: right beside somebody, or at an end.
std::uint64_t PlaceFilling::cheapest_place(std::uint64_t size) const {
  const std::uint64_t budget = ledger_.planning.budget;
  std::uint64_t best = no_place;
  double least = std::numeric_limits<double>::infinity();
  std::vector<Range> by_end(in_the_way_);
  std::sort(by_end.begin(), by_end.end(), [](const Range& a, const Range& b) { return a.end < b.end; });
  // The weights of those that begin before the end of a place, less of those that end before its start. Places are
  // asked for in ascending order.
  struct Sweep {
    std::size_t begun = 0;
    std::size_t ended = 0;
    double weight = 0;
  };
  const auto consider = [&](std::uint64_t place, Sweep& sweep) {
    if (place + size > budget) return;
    for (; sweep.begun < in_the_way_.size() && in_the_way_[sweep.begun].begin < place + size; ++sweep.begun) {
      sweep.weight += guests_[in_the_way_[sweep.begun].guest].weight;
    }
    for (; sweep.ended < by_end.size() && by_end[sweep.ended].end <= place; ++sweep.ended) {
      sweep.weight -= guests_[by_end[sweep.ended].guest].weight;
    }
    if (sweep.weight >= least) return;
    least = sweep.weight;
    best = place;
  };
  Sweep above;
  consider(0, above);
  for (const Range& range : by_end) consider(range.end, above);
  Sweep below;
  for (const Range& range : in_the_way_) {
    if (range.begin >= size) consider(range.begin - size, below);
  }
  if (budget >= size) consider(budget - size, below);
  return best;
}

std::vector<Bytes> PlaceFilling::offsets() const {
  std::vector<Bytes> offsets;
  offsets.reserve(guests_.size());
  for (const Guest& guest : guests_) offsets.push_back(Bytes{guest.offset});
  return offsets;
}

}  // namespace swapmm
