// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/search/best_search.hpp>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <utility>

#include <swapmm/plan/baselines/on_demand.hpp>
#include <swapmm/plan/problem/share.hpp>
#include <swapmm/plan/schedule/absence_stays.hpp>
#include <swapmm/plan/search/timing/range_load.hpp>

namespace swapmm::planning {

BestSearch::BestSearch(const PlanningCase& planning, const BestOptions& options, const PlanningOptions& limits,
                       BestPlan& best, const std::function<bool()>& go_on_relaxing, const StoreCase* stores)
    : planning_(planning),
      options_(options),
      limits_(limits),
      best_(best),
      ledger_(planning, stores != nullptr ? &stores->stores : nullptr),
      relaxed_(stores != nullptr
                   ? stores->relaxed
                   : relax_swaps(planning, ledger_, bound_effort_for(planning, options.bound), go_on_relaxing)),
      timing_(ledger_),
      search_(timing_, relaxed_, options.rounding, options.annealing),
      place_search_(ledger_, timing_, best_, options.places) {
  if (stores != nullptr) timing_.set_part_of_stores(stores->part);
}

void BestSearch::polish() {
  spare_bytes();
  // This runs at the end even if there is no time left: it takes some milliseconds for a thousand operations, a tenth
  // of a second at most.
  const EarlyReturnOptions& early = options_.early_returns;
  const std::size_t tries =
      std::min(std::max<std::size_t>(early.work / std::max<std::size_t>(work(), 1), 1), early.most_tries);
  if (tries > 0 && best_placed_ && best_placed_->rank == BestPlan::rank(best_.simulation())) {
    place_search_.return_earlier(best_placed_->decisions, {tries, early.looks, early.times_in_hand});
  }
}

BestSearch::Effort BestSearch::effort_of(int round) const {
  const AnnealingOptions& annealing = options_.annealing;
  const std::size_t by_work = annealing.work / std::max<std::size_t>(work(), 1);
  // Few absences have few neighbours.
  const std::size_t once = std::min({annealing.tries_per_absence * (1 + ledger_.absences.size()),
                                     std::max(by_work, annealing.least_tries), annealing.most_tries});
  constexpr int most_doublings = 16;
  const int more = std::min({round, options_.doublings, most_doublings});
  return {once << more,
          round < 2 ? options_.parts.packings : options_.parts.later_packings,
          1,
          options_.parts.steps << more,
          {options_.places.moves << more, options_.places.looks << more}};
}

BestSearch::Effort BestSearch::near_effort(int round) const {
  Effort effort = effort_of(round);
  effort.tries /= std::max<std::size_t>(options_.near_best.tries_divisor, 1);
  effort.packing_steps /= std::max<std::uint32_t>(options_.near_best.packing_divisor, 1);
  return effort;
}

bool BestSearch::is_done() const {
  return (!spares_bytes_ && best_.simulation().iteration <= relaxed_.lower_bound) || is_out_of_time();
}

void BestSearch::run_rounds(std::span<const NamedPlanner> others, std::optional<int> most_rounds) {
  if (rounds_done_ == 0) {
    if (is_small()) try_others(others);
    if (!is_small() && is_done()) return offer_leaner();
    if (!search_.round_relaxed()) return offer_belady();
    if (!is_small() && !most_time_) place_first();
  }
  const int first = rounds_done_;
  for (int& round = rounds_done_; !is_done(); ++round) {
    if (most_rounds && round - first >= *most_rounds) {
      if (others_have_a_turn()) try_others(others);
      return;
    }
    if (round > 0 && is_near_bound()) return;
    const std::chrono::nanoseconds before = best_.simulation().iteration;
    if (best_placed_ && options_.near_best.on) search_near_best(near_effort(round));
    search_round(effort_of(round));
    if (round == 0) offer_belady();
    // In larger traces, others take longer than several rounds, and are rarely better.
    if (others_have_a_turn() && !gained_since(before, options_.others.least_gain)) try_others(others);
  }
}

/// The first plan, which moves everything all the time, is as fast as can be: copies take next to no time. Then others
/// are as fast, and move fewer bytes.
void BestSearch::offer_leaner() {
  if (options_.spared_bytes.tries == 0 || is_large()) return;
  offer_belady();
  if (!is_out_of_time()) (void)search_.round_relaxed();  // what spare_bytes() begins with
}

void BestSearch::spare_bytes() {
  if (options_.spared_bytes.tries == 0 || is_large() || search_.best().away.empty() || is_out_of_time()) return;
  const std::chrono::nanoseconds fast_enough = std::max(best_.simulation().iteration, near_bound());
  best_.count_as_equal(fast_enough);
  spares_bytes_ = true;
  const AwayDecision before = search_.best();
  search_.spare_bytes(static_cast<double>(fast_enough.count()), options_.spared_bytes.tries,
                      [this] { return is_done(); });
  Effort effort = effort_of(0);
  effort.tries = 0;  // those of a packing are for time
  effort.packings = options_.spared_bytes.packings;
  place(search_.best(), effort);
  go_on_from(before);
  spares_bytes_ = false;
}

bool BestSearch::gained_since(std::chrono::nanoseconds before, double part) const {
  const auto was = static_cast<double>(before.count());
  return was - static_cast<double>(best_.simulation().iteration.count()) > part * was;
}

void BestSearch::try_others(std::span<const NamedPlanner> others) {
  if (std::exchange(tried_others_, true)) return;
  PlanningOptions options;  // the caller's go_on expects the progress of this search, not that of the other planner
  if (limits_.go_on) options.go_on = [this](const PlanningProgress&) { return limits_.go_on(progress()); };
  for (const NamedPlanner& other : others) {
    // Small traces try all, even if the bound is reached: among plans of equal time, the one that moves the fewest
    // bytes is the best.
    if (!is_small() && is_done()) return;
    if (Result<Plan> plan = other.make(planning_.trace, planning_.machine, options)) best_.offer(*std::move(plan));
  }
}

void BestSearch::offer_belady() {
  if (!options_.belady_if_nothing_packs || has_packed_ || std::exchange(offered_belady_, true)) return;
  Result<Plan> plan =
      build_on_demand_plan(planning_, "best", Pace::overlapped, Victim::used_furthest_ahead, options_.belady);
  if (plan) best_.offer(*std::move(plan));
}

/// Makes a plan before the search, from the rounded decisions, for a part of the budget that packs quickly. Places are
/// the hardest to find, so they come before better decisions.
void BestSearch::place_first() {
  const AwayDecision found = search_.best();
  const PartOptions& parts = options_.parts;
  Effort effort{.tries = 0,
                .packings = parts.packings,
                .first_part = parts.quick_part,
                .packing_steps = parts.quick_steps,
                .places = effort_of(0).places};
  if (is_large()) effort.places = {};
  place(found, effort);
  go_on_from(found);
}

void BestSearch::search_round(const Effort& effort) {
  search_.improve(effort.tries, [this] { return is_done(); });
  const AwayDecision found = search_.best();
  // Values that lack room make a plan slower.
  if (most_time_ && found.iteration > static_cast<double>(most_time_->count())) return;
  place(found, effort);
  go_on_from(found);
}

/// Continues from this decision with the whole budget, after plans were made within other limits.
void BestSearch::go_on_from(const AwayDecision& decision) {
  set_limits(1);
  search_.start_from(decision);
}

/// Searches near the best plan until that has failed to improve it several times; in the first rounds, which have the
/// least effort, not as often.
void BestSearch::search_near_best(const Effort& effort) {
  const int most = std::min(options_.near_best.failures, rounds_done_ + 1);
  int failures = 0;
  do {
    const std::chrono::nanoseconds before = best_.simulation().iteration;
    search_once_near_best(effort);
    failures = gained_since(before, std::max(options_.near_best.least_gain, 0.0)) ? 0 : failures + 1;
  } while (failures < most && !is_near_bound() && !is_done());
}

/// Searches for decisions by which no operation holds more than in the best plan, in which all tensors have places.
void BestSearch::search_once_near_best(const Effort& effort) {
  const AwayDecision before = search_.best();
  AwayDecision start = before;
  const PlacedDecisions& placed = best_placed_->decisions;
  if (timing_.has_stores()) start.stores = stores_of(placed, before.stores);
  for (std::uint32_t a = 0; a < start.away.size(); ++a) start.away[a] = placed.absences[a].stays ? 0 : 1;
  ledger_.absences = placed.absences;
  const std::vector<Stay> stays = stays_of(ledger_);
  places_.remember(stays, placed.offsets);
  set_limits_to(stays);
  search_.start_from(std::move(start));
  if (search_.fit_again()) {
    search_.improve(effort.tries, [this] { return is_done(); });
    search_.repeat_best();
    place_once(effort, before);
  }
  go_on_from(before);
}

/// Where values are by decisions with places; fixed ones are where they always are.
std::vector<std::uint8_t> BestSearch::stores_of(const PlacedDecisions& placed, std::vector<std::uint8_t> stores) const {
  for (std::uint32_t a = 0; a < placed.absences.size(); ++a) stores[timing_.kept_of(a)] = placed.absences[a].store;
  for (std::uint32_t v = 0; v < placed.versions.size(); ++v) stores[v] = placed.versions[v].store;
  return stores;
}

void BestSearch::set_limits_to(const std::vector<Stay>& stays) {
  RangeLoad held{std::vector<std::int64_t>(planning_.operations)};
  for (const Stay& stay : stays) {
    held.add(stay.start, stay.start + stay.length, static_cast<std::int64_t>(planning_.sizes[index(stay.tensor)]));
  }
  for (std::uint32_t i = 0; i < planning_.operations; ++i) {
    timing_.set_limit(i, std::max(held.at(i), timing_.bundle(i)));
  }
}

/// Makes plans from the decisions. If they do not pack, they are made again so that no operation holds more than a part
/// of the budget. Whether it packs or not, each packing starts a search with places.
void BestSearch::place(const AwayDecision& found, const Effort& effort) {
  if (part_ && options_.parts.step > 0 && !spares_bytes_) {
    place_near_last_part(found, effort);
  } else {
    place_first_parts(found, effort);
  }
}

/// A few packings find how large the part can be.
void BestSearch::place_first_parts(const AwayDecision& found, const Effort& effort) {
  double fits = 0;
  double fits_not = 1;
  double part = effort.first_part;
  for (int packing = 0; packing < effort.packings && fits_not - fits > options_.parts.precision; ++packing) {
    if (packing > 0 && is_done()) return;
    if (!decide_within(part, found, effort)) return;
    search_.repeat_best();
    const bool packs = place_once(effort, found);
    (packs ? fits : fits_not) = part;
    if (packs && !spares_bytes_) part_ = part > 0 ? std::min(part, 1.0) : 0;
    if (fits == effort.first_part) return;
    // First go down in growing steps, then bisect.
    part = fits > 0 ? (fits + fits_not) / 2 : 1 - (1 - part) * 2 - 0.03;
  }
}

/// Places are searched at random: near the largest part that packs, each packing may lead to a better plan. Only many
/// steps in one direction grow, because the first part was far from the largest then.
void BestSearch::place_near_last_part(const AwayDecision& found, const Effort& effort) {
  for (int packing = 0; packing < effort.packings; ++packing) {
    if (packing > 0 && is_done()) return;
    const bool fits = decide_within(*part_, found, effort);
    if (fits) search_.repeat_best();
    const bool packs = fits && place_once(effort, found);
    if (packs && *part_ >= 1) return;
    const bool goes_up = !fits || packs;
    steps_alike_ = goes_up ? std::max(steps_alike_, 0) + 1 : std::min(steps_alike_, 0) - 1;
    constexpr int many = 5;
    const double step = std::ldexp(options_.parts.step, std::clamp(std::abs(steps_alike_) - many, 0, 16));
    part_ = std::clamp(*part_ + (goes_up ? step : -step), 0.0, 1.0);
  }
}

bool BestSearch::decide_within(double part, const AwayDecision& found, const Effort& effort) {
  set_limits(part);
  search_.start_from(found);
  if (part == 1) return true;
  if (!search_.fit_again()) return false;
  search_.improve(effort.tries / std::max<std::size_t>(options_.parts.tries_divisor, 1), [this] { return is_done(); });
  return true;
}

void BestSearch::set_limits(double part) {
  const auto most = static_cast<std::int64_t>(share_of(planning_.budget, part));
  for (std::uint32_t i = 0; i < planning_.operations; ++i) timing_.set_limit(i, std::max(most, timing_.bundle(i)));
}

/// Makes a plan from the timing's last pass. Returns true if it packs.
bool BestSearch::place_once(const Effort& effort, const AwayDecision& found) {
  // Room that is reserved late packs more easily. Reserved a little earlier, it gives copies time in hand.
  timing_.reserve_late(options_.parts.time_in_hand);
  timing_.write_decisions();
  Schedule schedule{Pace::overlapped, stays_of(ledger_)};
  const std::function<bool()> go_on = [this] { return !is_done(); };
  PackingEffort packing = options_.parts.packing;
  packing.ejection_steps = effort.packing_steps;
  packing.go_on = &go_on;
  packing.keeps_to_steps = true;
  packing.keep_most = true;
  std::vector<Bytes> preferred;
  if (options_.parts.remembers_places) preferred = places_.of(schedule.stays);
  Result<BuiltPlan> built = build_plan(planning_, schedule, "best", packing, preferred);
  if (!built) return false;
  const bool is_placed = built->plan.has_value();
  // A smaller part would give up overlap in all of the iteration.
  for (int repair = 0; repair < options_.parts.repairs && !built->plan && !is_done(); ++repair) {
    if (!shorten_unplaced(schedule.stays, built->unplaced)) break;
    schedule.stays = stays_of(ledger_);
    built = build_plan(planning_, schedule, "best", packing);
    if (!built) return false;
  }
  std::optional<PlacedDecisions> found_best;
  if (built->plan) {
    places_.remember(schedule.stays, built->offsets);
    if (best_.offer(*std::move(built->plan))) found_best.emplace(ledger_, built->offsets);
    has_packed_ = true;
  }
  if (effort.places.looks > 0 && !planning_.machine.max_allocation) search_places(*built, found, effort, found_best);
  return is_placed;
}

/// Shortens stays that found no place. Returns false if none can be, or if most stays found none.
bool BestSearch::shorten_unplaced(const std::vector<Stay>& stays, const std::vector<std::uint32_t>& unplaced) {
  if (unplaced.size() > stays.size() / 2) return false;
  bool is_changed = false;
  for (const std::uint32_t u : unplaced) is_changed |= shorten(stays[u]);
  return is_changed;
}

/// Lets a stay begin later or, if it begins as late as it can, end sooner. Returns false if it can do neither.
bool BestSearch::shorten(const Stay& stay) {
  const std::uint32_t n = planning_.operations;
  const std::uint32_t end = (stay.start + stay.length) % n;
  for (Absence& before : ledger_.absences) {
    if (before.tensor == stay.tensor && before.returns % n == stay.start && return_late(before)) return true;
  }
  for (Absence& behind : ledger_.absences) {
    if (behind.tensor == stay.tensor && behind.leaves % n == end && leave_early(behind)) return true;
  }
  return false;
}

/// Searches near the places that were packed. PlaceSearch does not support arenas.
void BestSearch::search_places(const BuiltPlan& built, const AwayDecision& found, const Effort& effort,
                               std::optional<PlacedDecisions> found_best) {
  if (!is_done()) {
    place_search_.run(built.offsets, found.away, effort.places, [this] { return is_done(); });
    if (std::optional<PlacedDecisions> better = place_search_.take_found()) found_best = std::move(better);
  }
  if (found_best) best_placed_ = {*std::move(found_best), BestPlan::rank(best_.simulation())};
}

}  // namespace swapmm::planning
