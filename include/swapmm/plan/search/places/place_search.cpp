// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/search/places/place_search.hpp>

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <utility>

namespace swapmm::planning {
namespace {

constexpr std::size_t between_questions = 16;

}  // namespace

PlaceSearch::PlaceSearch(OverlapLedger& ledger, SwapTiming& timing, BestPlan& best, const PlaceOptions& options)
    : ledger_(ledger), timing_(timing), best_(best), options_(options) {}

void PlaceSearch::run(std::span<const Bytes> offsets, const std::vector<char>& wished_away, const Effort& effort,
                      const IsEnough& is_enough) {
  effort_ = effort;
  is_enough_ = &is_enough;
  found_.reset();
  forget_limits();
  PlaceFilling filling(ledger_, offsets, options_);
  if (!filling.house_everybody(effort.moves, effort.looks)) return;
  auto reached = offer(filling);
  for (int round = 0; round < options_.rounds && !is_done(filling); ++round) {
    let_stay(filling, largest_away(wished_away), round == 0);
    time_again(filling, options_.time_in_hand);
    const auto before = std::exchange(reached, std::min(reached, offer(filling)));
    if (reached == before) return;
  }
}

void PlaceSearch::return_earlier(PlacedDecisions placed, const Tries& tries) {
  std::size_t tries_left = tries.tries;
  std::uint64_t looks_left = tries.looks;
  for (const double time_in_hand : tries.times_in_hand) {
    forget_limits();
    placed.decide(ledger_);
    const std::vector<Absence> wished = wished_gaps(time_in_hand);
    const std::vector<std::uint32_t> away = away_by_use(wished);
    std::vector<char> returns_as_before(ledger_.absences.size());
    for (bool is_as_good = false; !is_as_good; --tries_left) {
      if (tries_left == 0) return;
      placed.decide(ledger_);
      PlaceFilling filling(ledger_, placed.offsets, options_);
      if (!return_all(filling, away, returns_as_before, wished, looks_left)) return;
      looks_left -= filling.looks();
      Plan plan = build_placed_plan(ledger_.planning, filling.schedule(), "best", filling.offsets());
      Simulation outcome = best_.outcome_of(plan);
      const std::uint32_t late = first_delayed(outcome);
      is_as_good = best_.offer_as_good(std::move(plan), std::move(outcome));
      if (is_as_good) {
        placed = PlacedDecisions(ledger_, filling.offsets());
      } else if (!blame(late, placed.absences, returns_as_before)) {
        break;
      }
    }
  }
}

/// Marks tensors that return earlier than before and are on their way when the operation runs: from now on they return
/// as before. Returns false if there are none.
bool PlaceSearch::blame(std::uint32_t operation, const std::vector<Absence>& before,
                        std::vector<char>& returns_as_before) const {
  bool found = false;
  for (std::uint32_t a = 0; a < before.size(); ++a) {
    const Absence& now = ledger_.absences[a];
    if (now.stays || now.returns == before[a].returns || !is_under_way(now, operation)) continue;
    returns_as_before[a] = 1;
    found = true;
  }
  return found;
}

/// The first operation that ends later than in the best plan by more than a quarter of the whole iteration's delay.
std::uint32_t PlaceSearch::first_delayed(const Simulation& outcome) const {
  const Simulation& best = best_.simulation();
  const std::chrono::nanoseconds delay = (outcome.iteration - best.iteration) / 4;
  std::uint32_t operation = 0;
  while (operation + 1 < outcome.operations.size() &&
         outcome.operations[operation].end - best.operations[operation].end <= delay) {
    ++operation;
  }
  return operation;
}

/// Whether the operation lies between the tensor's return and its use.
bool PlaceSearch::is_under_way(const Absence& absence, std::uint32_t operation) const {
  const std::uint32_t next = operation + ledger_.planning.operations;
  return (absence.returns <= operation && operation <= absence.end) || (absence.returns <= next && next <= absence.end);
}

void PlaceSearch::forget_limits() {
  const auto budget = static_cast<std::int64_t>(ledger_.planning.budget);
  for (std::uint32_t i = 0; i < ledger_.planning.operations; ++i) timing_.set_limit(i, budget);
}

bool PlaceSearch::is_done(const PlaceFilling& filling) const {
  return filling.looks() > effort_.looks || (*is_enough_)();
}

/// How many other stays may be moved for this tensor. Small tensors gain too little to move any.
std::size_t PlaceSearch::moves_for(std::uint32_t absence) const {
  const bool is_large = options_.least_part == 0 || static_cast<std::uint64_t>(timing_.size(absence)) >
                                                        ledger_.planning.budget / options_.least_part;
  return is_large ? effort_.moves : 0;
}

std::vector<std::uint32_t> PlaceSearch::largest_away(const std::vector<char>& wished_away) const {
  std::vector<std::uint32_t> absences;
  for (std::uint32_t a = 0; a < ledger_.absences.size(); ++a) {
    const Absence& absence = ledger_.absences[a];
    if (!absence.stays && !absence.is_arrival && timing_.size(a) > 0) absences.push_back(a);
  }
  std::sort(absences.begin(), absences.end(), [&](std::uint32_t a, std::uint32_t b) {
    return std::tuple(wished_away[a], -timing_.size(a), a) < std::tuple(wished_away[b], -timing_.size(b), b);
  });
  return absences;
}

/// Moves others only if `by_moving`: a tensor that found no place by moving others rarely finds one after copies were
/// timed again.
void PlaceSearch::let_stay(PlaceFilling& filling, const std::vector<std::uint32_t>& absences, bool by_moving) {
  for (std::size_t i = 0; i < absences.size(); ++i) {
    if (i % between_questions == between_questions - 1 && is_done(filling)) return;
    (void)filling.try_to_stay(absences[i], by_moving ? moves_for(absences[i]) : 0);
  }
}

/// The ledger's absences with the gaps of a new pass over its decisions. The ledger keeps its own gaps, but its
/// versions take over those of the pass, because they need no places.
std::vector<Absence> PlaceSearch::wished_gaps(double time_in_hand) {
  for (std::uint32_t a = 0; a < ledger_.absences.size(); ++a) timing_.set_away(a, !ledger_.absences[a].stays);
  if (timing_.has_stores()) timing_.set_stores_by_ledger();
  if (timing_.largest_overrun() > 0) return {};
  (void)timing_.pass();  // starts from the ends of other decisions
  (void)timing_.pass();
  timing_.reserve_late(time_in_hand);
  std::vector<Absence> kept(ledger_.absences);
  timing_.write_decisions();
  kept.swap(ledger_.absences);
  return kept;
}

/// Lets tensors leave and return in the gaps of a new pass, or as near to them as there are places.
void PlaceSearch::time_again(PlaceFilling& filling, double time_in_hand) {
  const std::vector<Absence> wished = wished_gaps(time_in_hand);
  const std::vector<std::uint32_t> away = away_by_use(wished);
  for (std::size_t i = 0; i < away.size(); ++i) {
    if (i % between_questions == between_questions - 1 && is_done(filling)) return;
    leave_at(filling, away[i], wished[away[i]].leaves);
  }
  for (std::size_t i = 0; i < away.size(); ++i) {
    if (i % between_questions == between_questions - 1 && is_done(filling)) return;
    return_from(filling, away[i], wished[away[i]].returns, moves_for(away[i]));
  }
}

/// The absences over which tensors are away, in the order in which they are needed.
std::vector<std::uint32_t> PlaceSearch::away_by_use(const std::vector<Absence>& absences) const {
  const std::uint32_t n = ledger_.planning.operations;
  std::vector<std::uint32_t> by_use;
  for (std::uint32_t a = 0; a < absences.size(); ++a) {
    if (!absences[a].stays) by_use.push_back(a);
  }
  std::sort(by_use.begin(), by_use.end(), [&](std::uint32_t a, std::uint32_t b) {
    return std::tuple(absences[a].end % n, a) < std::tuple(absences[b].end % n, b);
  });
  return by_use;
}

/// Lets tensors return as soon as `wished`, or as near to it as there is a place, without moving others. Leaves out
/// those that return as before. Returns false if that takes too many looks.
bool PlaceSearch::return_all(PlaceFilling& filling, const std::vector<std::uint32_t>& by_use,
                             const std::vector<char>& returns_as_before, const std::vector<Absence>& wished,
                             std::uint64_t most_looks) {
  // Copies run in the order in which they are issued: a tensor that is used later must not be copied before one that is
  // used sooner, in this round of the circle or the one before.
  const std::int64_t n = ledger_.planning.operations;
  const auto round_before = [n](const Absence& absence) { return absence.end - absence.end % n; };
  std::int64_t soonest = -n;
  for (const std::uint32_t a : by_use) {
    const Absence& now = ledger_.absences[a];
    if (!now.lingers) soonest = std::max(soonest, std::int64_t{now.returns} - round_before(now) - n);
  }
  for (const std::uint32_t a : by_use) {
    const Absence& now = ledger_.absences[a];
    if (now.lingers) continue;
    const std::int64_t wish = std::max(soonest + round_before(now), std::int64_t{wished[a].returns});
    if (returns_as_before[a] == 0 && wish < now.returns) {
      if (filling.looks() > most_looks) return false;
      return_from(filling, a, static_cast<std::uint32_t>(wish), 0);
    }
    soonest = std::max(soonest, std::int64_t{now.returns} - round_before(now));
  }
  return filling.looks() <= most_looks;
}

void PlaceSearch::leave_at(PlaceFilling& filling, std::uint32_t absence, std::uint32_t gap) {
  const Absence& now = ledger_.absences[absence];
  if (now.is_arrival || gap == now.leaves || gap > now.returns) return;
  (void)filling.try_to_leave(absence, gap, moves_for(absence));
}

/// Lets the tensor return in this gap, or in a later one before its present gap.
void PlaceSearch::return_from(PlaceFilling& filling, std::uint32_t absence, std::uint32_t gap, std::size_t moves) {
  const Absence& now = ledger_.absences[absence];
  if (now.lingers) return;
  for (gap = std::max(gap, now.gone); gap < now.returns; gap += (now.returns - gap + 1) / 2) {
    if (filling.try_to_return(absence, gap, moves)) return;
  }
}

std::chrono::nanoseconds PlaceSearch::offer(const PlaceFilling& filling) {
  Plan plan = build_placed_plan(ledger_.planning, filling.schedule(), "best", filling.offsets());
  Simulation outcome = best_.outcome_of(plan);
  const std::chrono::nanoseconds time = outcome.iteration;
  if (best_.offer(std::move(plan), std::move(outcome))) found_.emplace(ledger_, filling.offsets());
  return time;
}

}  // namespace swapmm::planning
