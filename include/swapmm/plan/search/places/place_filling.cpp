// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/search/places/place_filling.hpp>

#include <algorithm>
#include <utility>

#include <swapmm/plan/schedule/absence_stays.hpp>
#include <swapmm/plan/schedule/stay_facts.hpp>

namespace swapmm::planning {
namespace {

constexpr std::uint64_t no_place = PlaceBoard::no_place;

bool stay_over_none(Absence& absence) {
  if (!absence.stays) return false;
  absence.stays = false;
  absence.leaves = absence.gone = absence.first;
  absence.returns = absence.queued = absence.end;
  return true;
}

}  // namespace

PlaceFilling::PlaceFilling(OverlapLedger& ledger, std::span<const Bytes> offsets, const PlaceOptions& options)
    : ledger_(ledger),
      move_cost_factor_(options.move_cost_factor),
      required_moves_factor_(options.required_moves_factor),
      slots_(ledger.planning.operations),
      board_(slots_, ledger.planning.budget),
      of_tensor_(ledger.planning.sizes.size()) {
  const std::uint64_t budget = ledger.planning.budget;
  std::vector<PlaceBoard::Place> places;
  for (std::size_t t = 0; t < of_tensor_.size(); ++t) {
    for (const Guest& guest : guests_of(id_at<TensorId>(t))) {
      const std::uint64_t offset = offsets[guests_.size()].value;
      const GuestId id = admit(guest);
      of_tensor_[t].push_back(id);
      if (guest.size == 0 || guest.size > budget || offset > budget - guest.size) continue;
      guests_[id].offset = offset;
      places.push_back({offset, offset + guest.size, guest.start, guest.slots, id});
    }
  }
  board_.add_all(places);
}

/// The stays of the current decisions, without places.
std::vector<PlaceFilling::Guest> PlaceFilling::guests_of(TensorId tensor) const {
  std::vector<Guest> guests;
  const std::uint64_t size = ledger_.planning.sizes[index(tensor)];
  for (const Stay& stay : stays_of(ledger_, tensor)) {
    std::vector<WriteBack> write_backs;
    const StayFacts facts = find_stay_facts(ledger_.planning, stay, Pace::overlapped, write_backs);
    const std::uint32_t slots = packed_length(ledger_.planning, stay, facts);
    guests.push_back({tensor, stay.start, slots, size, size == 0 ? 0 : no_place});
  }
  return guests;
}

PlaceFilling::GuestId PlaceFilling::admit(const Guest& guest) {
  if (unused_.empty()) {
    guests_.push_back(guest);
    weights_.push_back(guest.area());
    return static_cast<GuestId>(guests_.size() - 1);
  }
  const GuestId id = unused_.back();
  unused_.pop_back();
  guests_[id] = guest;
  weights_[id] = guest.area();
  return id;
}

void PlaceFilling::settle(GuestId id, std::uint64_t offset) {
  Guest& guest = guests_[id];
  guest.offset = offset;
  if (guest.size > 0) board_.add({offset, offset + guest.size, guest.start, guest.slots, id});
}

void PlaceFilling::unsettle(GuestId id) {
  Guest& guest = guests_[id];
  if (guest.size == 0 || guest.offset == no_place) return;
  board_.remove(guest.offset, id);
  guest.offset = no_place;
}

bool PlaceFilling::try_to_stay(std::uint32_t absence, std::size_t moves) {
  Absence& decision = ledger_.absences[absence];
  decision.stays = true;
  if (rehouse(decision.tensor, moves)) return true;
  decision.stays = false;
  return false;
}

bool PlaceFilling::try_to_leave(std::uint32_t absence, std::uint32_t leaves, std::size_t moves) {
  Absence decision = ledger_.absences[absence];
  decision.leaves = decision.gone = leaves;
  return try_to_decide(absence, decision, moves);
}

bool PlaceFilling::try_to_return(std::uint32_t absence, std::uint32_t returns, std::size_t moves) {
  Absence decision = ledger_.absences[absence];
  decision.returns = decision.queued = returns;
  return try_to_decide(absence, decision, moves);
}

bool PlaceFilling::try_to_decide(std::uint32_t absence, const Absence& decision, std::size_t moves) {
  const Absence before = std::exchange(ledger_.absences[absence], decision);
  if (rehouse(decision.tensor, moves)) return true;
  ledger_.absences[absence] = before;
  return false;
}

bool PlaceFilling::house_everybody(std::size_t moves, std::uint64_t most_looks) {
  std::vector<Guest> without;
  for (const std::vector<GuestId>& guests : of_tensor_) {
    for (const GuestId id : guests) {
      if (guests_[id].offset == no_place) without.push_back(guests_[id]);
    }
  }
  std::sort(without.begin(), without.end(), [](const Guest& a, const Guest& b) { return a.area() > b.area(); });
  return std::all_of(without.begin(), without.end(), [&](const Guest& guest) {
    if (looks_ > most_looks) return false;
    if (rehouse(guest.tensor, moves)) return true;
    // Less room, a little of the overlap: it comes later, goes sooner, and stays over no absence.
    for (const auto change : {&return_late, &leave_early}) {
      if (change_all(guest.tensor, change) && rehouse(guest.tensor, moves)) return true;
    }
    (void)change_all(guest.tensor, &stay_over_none);
    return rehouse(guest.tensor, required_moves_factor_ * moves);
  });
}

/// Changes the decisions over the absences of a tensor. Whether there was anything to change.
bool PlaceFilling::change_all(TensorId tensor, bool (*change)(Absence&)) {
  bool is_changed = false;
  for (Absence& absence : ledger_.absences) is_changed |= absence.tensor == tensor && change(absence);
  return is_changed;
}

/// Places the stays of a tensor again after its decisions have changed. Returns false if there are no places; then
/// nothing has changed.
bool PlaceFilling::rehouse(TensorId tensor, std::size_t moves) {
  const std::vector<Guest> before = check_out(tensor);
  const std::vector<Guest> after = guests_of(tensor);
  if (!may_fit(after)) {
    (void)check_in(tensor, before);
    return false;
  }
  moved_.clear();
  std::vector<GuestId> unplaced;
  for (const GuestId id : check_in(tensor, after)) {
    if (!is_back(id, before)) unplaced.push_back(id);
  }
  const bool is_housed = house(std::move(unplaced), moves);
  for (const auto& [id, offset] : moved_) weights_[id] = guests_[id].area();
  if (is_housed) return true;
  for (const auto& [id, offset] : moved_) unsettle(id);
  // Some were moved more than once: the first entry of each has its old place.
  for (const auto& [id, offset] : moved_) {
    if (guests_[id].offset == no_place) settle(id, offset);
  }
  (void)check_out(tensor);
  (void)check_in(tensor, before);
  return false;
}

std::vector<PlaceFilling::Guest> PlaceFilling::check_out(TensorId tensor) {
  std::vector<Guest> guests;
  for (const GuestId id : of_tensor_[index(tensor)]) {
    guests.push_back(guests_[id]);
    unsettle(id);
    unused_.push_back(id);
  }
  of_tensor_[index(tensor)].clear();
  return guests;
}

/// Adds these stays. Those with an offset take their places.
std::vector<PlaceFilling::GuestId> PlaceFilling::check_in(TensorId tensor, const std::vector<Guest>& guests) {
  std::vector<GuestId>& ids = of_tensor_[index(tensor)];
  for (const Guest& guest : guests) {
    ids.push_back(admit(guest));
    if (guest.offset != no_place) settle(ids.back(), guest.offset);
  }
  return ids;
}

/// Whether enough bytes are free for these stays of one tensor, which share no slot.
bool PlaceFilling::may_fit(const std::vector<Guest>& guests) const {
  return std::all_of(guests.begin(), guests.end(),
                     [&](const Guest& guest) { return board_.has_bytes(guest.start, guest.slots, guest.size); });
}

/// Places the stay where an earlier stay was that shares a slot with it, if no other stay is there. Returns true if
/// that succeeds, or if the stay needs no place.
bool PlaceFilling::is_back(GuestId id, const std::vector<Guest>& before) {
  const Guest& guest = guests_[id];
  if (guest.size == 0) return true;
  const auto from = [&](std::uint32_t start, std::uint32_t slot) {
    return slot >= start ? slot - start : slot + slots_ - start;
  };
  look_around(guest);
  for (const Guest& old : before) {
    if (old.offset == no_place || !board_.is_free(old.offset, old.size)) continue;
    if (from(old.start, guest.start) >= old.slots && from(guest.start, old.start) >= guest.slots) continue;
    settle(id, old.offset);
    return true;
  }
  return false;
}

/// Finds places for stays without one, heaviest first.
bool PlaceFilling::house(std::vector<GuestId> unplaced, std::size_t moves) {
  while (!unplaced.empty()) {
    const auto heaviest = std::max_element(unplaced.begin(), unplaced.end(),
                                           [&](GuestId a, GuestId b) { return weights_[a] < weights_[b]; });
    const GuestId id = *heaviest;
    unplaced.erase(heaviest);
    const std::uint64_t size = guests_[id].size;
    look_around(guests_[id]);
    std::uint64_t offset = board_.free_place(size);
    if (offset == no_place) {
      offset = moves > 0 ? board_.cheapest_place(size, weights_) : no_place;
      if (offset == no_place) return false;
      --moves;
      for (const PlaceBoard::Place& place : board_.in_the_way()) {
        if (place.begin >= offset + size || place.end <= offset) continue;
        moved_.emplace_back(place.guest, place.begin);
        unsettle(place.guest);
        weights_[place.guest] *= move_cost_factor_;
        unplaced.push_back(place.guest);
      }
    }
    settle(id, offset);
  }
  return true;
}

void PlaceFilling::look_around(const Guest& guest) {
  looks_ += guests_.size();
  board_.look_around(guest.start, guest.slots);
}

std::vector<Bytes> PlaceFilling::offsets() const {
  std::vector<Bytes> offsets;
  offsets.reserve(guests_.size());
  for (const std::vector<GuestId>& guests : of_tensor_) {
    for (const GuestId id : guests) offsets.push_back(Bytes{guests_[id].offset});
  }
  return offsets;
}

}  // namespace swapmm::planning
