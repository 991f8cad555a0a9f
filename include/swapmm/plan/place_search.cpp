// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/place_search.hpp>

#include <algorithm>
#include <tuple>
#include <utility>

namespace swapmm {
namespace {

constexpr std::size_t between_questions = 16;

}  // namespace

PlaceSearch::PlaceSearch(OverlapLedger& ledger, SwapTiming& timing, BestPlan& best)
    : ledger_(ledger), timing_(timing), best_(best) {}

void PlaceSearch::run(std::span<const Bytes> offsets, const std::vector<char>& wished_away, const Effort& effort,
                      const IsEnough& is_enough) {
  constexpr int most_rounds = 4;
  constexpr double time_in_hand = 0.1;
  effort_ = effort;
  is_enough_ = &is_enough;
  found_.reset();
  forget_limits();
  PlaceFilling filling(ledger_, offsets);
  if (!filling.house_everybody(effort.moves, effort.looks)) return;
  auto reached = offer(filling);
  for (int round = 0; round < most_rounds && !is_done(filling); ++round) {
    let_stay(filling, largest_away(wished_away), round == 0);
    time_again(filling, time_in_hand);
    const auto before = std::exchange(reached, std::min(reached, offer(filling)));
    if (reached == before) return;
  }
}

void PlaceSearch::return_earlier(PlacedDecisions placed, const Effort& effort, const IsEnough& is_enough) {
  constexpr double twice_the_time = 1;
  effort_ = effort;
  is_enough_ = &is_enough;
  forget_limits();
  ledger_.absences = std::move(placed.absences);
  PlaceFilling filling(ledger_, placed.offsets);
  time_again(filling, twice_the_time);
  best_.offer_as_good(build_placed_plan(ledger_.planning, filling.schedule(), "best", filling.offsets()));
}

void PlaceSearch::forget_limits() {
  const auto budget = static_cast<std::int64_t>(ledger_.planning.budget);
  for (std::uint32_t i = 0; i < ledger_.planning.operations; ++i) timing_.set_limit(i, budget);
}

bool PlaceSearch::is_done(const PlaceFilling& filling) const {
  return filling.looks() > effort_.looks || (*is_enough_)();
}

/// Small ones gain too little to move others for.
std::size_t PlaceSearch::moves_for(std::uint32_t absence) const {
  constexpr std::int64_t least_part = 500;
  const bool is_large = timing_.size(absence) > static_cast<std::int64_t>(ledger_.planning.budget) / least_part;
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

/// Who found no place by moving others hardly finds one after copies were timed again.
void PlaceSearch::let_stay(PlaceFilling& filling, const std::vector<std::uint32_t>& absences, bool by_moving) {
  for (std::size_t i = 0; i < absences.size(); ++i) {
    if (i % between_questions == between_questions - 1 && is_done(filling)) return;
    (void)filling.try_to_stay(absences[i], by_moving ? moves_for(absences[i]) : 0);
  }
}

/// The gaps of a pass over the decisions of the ledger, which keeps its own; what needs no place it takes over.
std::vector<Absence> PlaceSearch::wished_gaps(double time_in_hand) {
  for (std::uint32_t a = 0; a < ledger_.absences.size(); ++a) timing_.set_away(a, !ledger_.absences[a].stays);
  if (timing_.largest_overrun() > 0) return {};
  (void)timing_.pass();  // from the ends of others
  (void)timing_.pass();
  timing_.reserve_late(time_in_hand);
  std::vector<Absence> kept(ledger_.absences);
  timing_.write_decisions();
  kept.swap(ledger_.absences);
  return kept;
}

/// Tensors leave and return when they should, or as near to it as there is a place for them.
void PlaceSearch::time_again(PlaceFilling& filling, double time_in_hand) {
  const std::vector<Absence> wished = wished_gaps(time_in_hand);
  const std::uint32_t n = ledger_.planning.operations;
  std::vector<std::uint32_t> by_use;
  for (std::uint32_t a = 0; a < wished.size(); ++a) {
    if (!wished[a].stays) by_use.push_back(a);
  }
  std::sort(by_use.begin(), by_use.end(), [&](std::uint32_t a, std::uint32_t b) {
    return std::tuple(wished[a].end % n, a) < std::tuple(wished[b].end % n, b);
  });
  for (std::size_t i = 0; i < by_use.size(); ++i) {
    if (i % between_questions == between_questions - 1 && is_done(filling)) return;
    leave_at(filling, by_use[i], wished[by_use[i]].leaves);
  }
  for (std::size_t i = 0; i < by_use.size(); ++i) {
    if (i % between_questions == between_questions - 1 && is_done(filling)) return;
    return_from(filling, by_use[i], wished[by_use[i]].returns);
  }
}

void PlaceSearch::leave_at(PlaceFilling& filling, std::uint32_t absence, std::uint32_t gap) {
  const Absence& now = ledger_.absences[absence];
  if (now.is_arrival || gap == now.leaves || gap > now.returns) return;
  (void)filling.try_to_move(absence, gap, now.returns, moves_for(absence));
}

/// From this gap on, or later than that, but not later than now.
void PlaceSearch::return_from(PlaceFilling& filling, std::uint32_t absence, std::uint32_t gap) {
  const Absence& now = ledger_.absences[absence];
  for (gap = std::max(gap, now.gone); gap < now.returns; gap += (now.returns - gap + 1) / 2) {
    if (filling.try_to_move(absence, now.gone, gap, moves_for(absence))) return;
  }
}

std::chrono::nanoseconds PlaceSearch::offer(const PlaceFilling& filling) {
  Plan plan = build_placed_plan(ledger_.planning, filling.schedule(), "best", filling.offsets());
  Simulation outcome = simulate(ledger_.planning.trace, plan);
  const std::chrono::nanoseconds time = outcome.iteration;
  if (best_.offer(std::move(plan), std::move(outcome))) found_ = {ledger_.absences, filling.offsets()};
  return time;
}

}  // namespace swapmm
