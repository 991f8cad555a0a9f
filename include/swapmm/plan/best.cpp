// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/best.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include <swapmm/plan/absence_stays.hpp>
#include <swapmm/plan/away_search.hpp>
#include <swapmm/plan/best_plan.hpp>
#include <swapmm/plan/fit.hpp>
#include <swapmm/plan/known_places.hpp>
#include <swapmm/plan/lower_bound.hpp>
#include <swapmm/plan/on_demand.hpp>
#include <swapmm/plan/place_search.hpp>
#include <swapmm/plan/schedule.hpp>
#include <swapmm/plan/swap_timing.hpp>

namespace swapmm {
namespace {

/// Of one round of the search.
struct Effort {
  std::size_t tries = 0;            ///< neighbours before packing
  int packings = 4;                 ///< parts of the budget that are tried
  double first_part = 1;            ///< of the budget, the first one of them
  std::uint32_t packing_steps = 0;  ///< of each
  PlaceSearch::Effort places;       ///< of each
};

class BestSearch {
 public:
  BestSearch(const PlanningCase& planning, const PlanningOptions& options, BestPlan& best)
      : planning_(planning),
        options_(options),
        best_(best),
        ledger_(planning),
        relaxed_(relax_swaps(planning, ledger_, bound_effort_for(planning))),
        timing_(ledger_),
        search_(timing_, relaxed_),
        place_search_(ledger_, timing_, best_, [this] { return is_done(); }) {}

  void run(std::span<const NamedPlanner> others) {
    constexpr int round_of_others = 2;  // of large traces: first come plans that are likely to be better
    if (work() <= small) try_others(others);
    if (work() > small && is_done()) return;
    if (!search_.round_relaxed()) return offer_belady();
    if (work() > large) place_first();
    for (int round = 0; !is_done(); ++round) {
      if (round == round_of_others && work() > small && work() <= large) try_others(others);
      if (!options_.go_on && round == rounds_without_clock()) return;
      search_round(effort_of(round));
      if (round == 0 && !has_packed_) offer_belady();
    }
  }

  [[nodiscard]] std::chrono::nanoseconds lower_bound() const { return relaxed_.lower_bound; }

 private:
  static constexpr std::size_t small = 400;     ///< work for which all planners take no time to speak of
  static constexpr std::size_t large = 10'000;  ///< work for which a round of the search takes long
  [[nodiscard]] std::size_t work() const { return planning_.operations + ledger_.absences.size(); }
  [[nodiscard]] int rounds_without_clock() const { return work() < 20'000 ? 2 : 1; }
  [[nodiscard]] Effort effort_of(int round) const {
    // Few absences have few neighbours.
    const std::size_t once = std::min(8 * (1 + ledger_.absences.size()),
                                      std::clamp<std::size_t>(1'500'000 / std::max<std::size_t>(work(), 1), 10, 800));
    const int more = std::min(round, 2);
    return {once << more,
            round < 2 ? 4 : 6,
            1,
            std::uint32_t{1000} << more,
            {std::size_t{10} << more, 40'000'000U << more}};
  }

  [[nodiscard]] bool is_done() const {
    const auto reached = best_.simulation().iteration;
    if (reached <= relaxed_.lower_bound) return true;
    return options_.go_on && !options_.go_on({reached, relaxed_.lower_bound});
  }

  void try_others(std::span<const NamedPlanner> others) {
    for (const NamedPlanner& other : others) {
      // Even where the bound is reached: of equal times the plan that moves the fewest bytes is the best one.
      if (work() > small && is_done()) return;
      if (Result<Plan> plan = other.make(planning_.trace, planning_.machine, {})) best_.offer(*std::move(plan));
    }
  }

  /// Where nothing packs: Belady's stays hold no room beside what is used, and so pack more easily.
  void offer_belady() {
    Result<Plan> plan = build_fitting_plan(planning_, "best", Pace::overlapped, [&](std::uint64_t bytes) {
      return on_demand_stays(planning_, Victim::used_furthest_ahead, bytes);
    });
    if (plan) best_.offer(*std::move(plan));
  }

  /// A plan before the search: of what the rounded decisions are, and of a part of the budget that soon packs.
  void place_first() {
    const AwayDecision found = search_.best();
    place(found, {.tries = 0, .first_part = 0.95, .packing_steps = 300, .places = {}});
    set_limits(1);
    search_.start_from(found);
  }

  void search_round(const Effort& effort) {
    search_.improve(effort.tries, [this] { return is_done(); });
    const AwayDecision found = search_.best();
    place(found, effort);
    set_limits(1);
    search_.start_from(found);
  }

  /// Plans of decisions. What does not pack is decided again so that no operation holds more than a part of the budget:
  /// as large a one as a few packings find. Whether it packs or not, it is where a search with places begins.
  void place(const AwayDecision& found, const Effort& effort) {
    constexpr double precise_enough = 0.004;
    double fits = 0;
    double fits_not = 1;
    double part = effort.first_part;
    for (int packing = 0; packing < effort.packings && fits_not - fits > precise_enough; ++packing) {
      if (packing > 0 && is_done()) return;
      if (!decide_within(part, found, effort)) return;
      search_.repeat_best();
      (place_once(effort, found) ? fits : fits_not) = part;
      if (fits == effort.first_part) return;
      // Down in steps that grow, then halving the distance.
      part = fits > 0 ? (fits + fits_not) / 2 : 1 - (1 - part) * 2 - 0.03;
    }
  }

  [[nodiscard]] bool decide_within(double part, const AwayDecision& found, const Effort& effort) {
    set_limits(part);
    search_.start_from(found);
    if (part == 1) return true;
    if (!search_.fit_again()) return false;
    search_.improve(effort.tries / 5, [this] { return is_done(); });
    return true;
  }

  void set_limits(double part) {
    const auto most = static_cast<std::int64_t>(static_cast<double>(planning_.budget) * part);
    for (std::uint32_t i = 0; i < planning_.operations; ++i) timing_.set_limit(i, std::max(most, timing_.bundle(i)));
  }

  /// Plans of the last pass. True where it packs.
  bool place_once(const Effort& effort, const AwayDecision& found) {
    // Room reserved late packs more easily; a little earlier, copies have time in hand.
    constexpr double time_in_hand = 0.1;
    timing_.reserve_late(time_in_hand);
    timing_.write_decisions();
    const Schedule schedule{Pace::overlapped, stays_of(ledger_)};
    const std::function<bool()> go_on = [this] { return !is_done(); };
    const PackingEffort packing{
        .ejection_steps = effort.packing_steps, .go_on = &go_on, .keeps_to_steps = true, .keep_most = true};
    Result<BuiltPlan> built = build_plan(planning_, schedule, "best", packing, places_.of(schedule.stays));
    if (!built) return false;
    const bool is_placed = built->plan.has_value();
    if (is_placed) {
      places_.remember(schedule.stays, built->offsets);
      best_.offer(*std::move(built->plan));
      has_packed_ = true;
    }
    // Places know nothing of arenas.
    const bool may_search = effort.places.looks > 0 && !planning_.machine.max_allocation;
    if (may_search && !is_done()) place_search_.run(built->offsets, found.away, effort.places);
    return is_placed;
  }

  const PlanningCase& planning_;
  const PlanningOptions& options_;
  BestPlan& best_;
  OverlapLedger ledger_;
  RelaxedSwaps relaxed_;
  SwapTiming timing_;
  AwaySearch search_;
  KnownPlaces places_;
  PlaceSearch place_search_;
  bool has_packed_ = false;
};

}  // namespace

Result<ProvenPlan> build_best_plan(const PlanningCase& planning, const PlanningOptions& options,
                                   std::span<const NamedPlanner> others) {
  Result<Plan> first = build_per_operation_plan(planning, Pace::one_at_a_time, "best");
  if (!first) return first.problem();
  BestPlan best(planning, *std::move(first));
  BestSearch search(planning, options, best);
  search.run(others);
  return ProvenPlan{std::move(best).take(), search.lower_bound()};
}

}  // namespace swapmm
