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
        search_(timing_, relaxed_) {}

  void run(std::span<const NamedPlanner> others) {
    constexpr int round_of_others = 2;  // of large traces: first come plans that are likely to be better
    if (work() <= small) try_others(others);
    if (work() > small && is_done()) return;
    if (!search_.round_relaxed()) return offer_belady();
    if (work() > large) place_first();
    for (int round = 0; !is_done(); ++round) {
      if (round == round_of_others && work() > small && work() <= large) try_others(others);
      if (!options_.go_on && round == rounds_without_clock()) return;
      search_round(effort_of(round), round >= round_of_others);
      if (round == 0 && packed_.away.empty()) offer_belady();
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
    return {once << more, round < 2 ? 4 : 6, 1, std::uint32_t{2500} << more};
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
    place(found, {.tries = 0, .first_part = 0.95, .packing_steps = 300});
    set_limits(1);
    search_.start_from(found);
  }

  void search_round(const Effort& effort, bool tightens) {
    search_.improve(effort.tries, [this] { return is_done(); });
    const AwayDecision found = search_.best();
    const double part = place(found, effort);
    if (tightens && part > 0 && part < 1) tighten(part, effort);
    set_limits(1);
    search_.start_from(found);
  }

  /// Plans of decisions. What does not pack is decided again so that no operation holds more than a part of the budget:
  /// as large a one as a few packings find, which is returned. `packed_` has the decisions of that.
  double place(const AwayDecision& found, const Effort& effort) {
    constexpr double precise_enough = 0.004;
    double fits = 0;
    double fits_not = 1;
    double part = effort.first_part;
    for (int packing = 0; packing < effort.packings && fits_not - fits > precise_enough; ++packing) {
      if (packing > 0 && is_done()) return fits;
      if (!decide_within(part, found, effort)) return fits;
      search_.repeat_best();
      const bool is_placed = place_once(effort.packing_steps);
      (is_placed ? fits : fits_not) = part;
      if (is_placed) packed_ = search_.best();
      if (fits == effort.first_part) break;
      // Down in steps that grow, then halving the distance.
      part = fits > 0 ? (fits + fits_not) / 2 : 1 - (1 - part) * 2 - 0.03;
    }
    return fits;
  }

  [[nodiscard]] bool decide_within(double part, const AwayDecision& found, const Effort& effort) {
    set_limits(part);
    search_.start_from(found);
    if (part == 1) return true;
    if (!search_.fit_again()) return false;
    search_.improve(effort.tries / 5, [this] { return is_done(); });
    return true;
  }

  /// From what packs, step by step towards the whole budget: neighbours that are faster, and pack as well.
  void tighten(double part, const Effort& effort) {
    constexpr double step = 0.004;
    constexpr int most_steps = 6;
    search_.start_from(packed_);
    for (int i = 0; i < most_steps && part < 1 && !is_done(); ++i) {
      set_limits(part);
      search_.improve_where(effort.tries / 8, [&] { return !is_done() && place_once(effort.packing_steps / 10); });
      part += step;
    }
  }

  void set_limits(double part) {
    const auto most = static_cast<std::int64_t>(static_cast<double>(planning_.budget) * part);
    for (std::uint32_t i = 0; i < planning_.operations; ++i) timing_.set_limit(i, std::max(most, timing_.bundle(i)));
  }

  /// A plan of the last pass. True where it packs.
  bool place_once(std::uint32_t steps) {
    // Room reserved late packs more easily; a little earlier, copies have time in hand.
    constexpr double time_in_hand = 0.1;
    timing_.reserve_late(time_in_hand);
    timing_.write_decisions();
    const Schedule schedule{Pace::overlapped, stays_of(ledger_)};
    const std::function<bool()> go_on = [this] { return !is_done(); };
    const PackingEffort packing{.ejection_steps = steps, .go_on = &go_on, .keeps_to_steps = true, .keep_most = true};
    Result<BuiltPlan> built = build_plan(planning_, schedule, "best", packing, places_.of(schedule.stays));
    if (!built || !built->plan) return false;
    places_.remember(schedule.stays, built->offsets);
    best_.offer(*std::move(built->plan));
    return true;
  }

  const PlanningCase& planning_;
  const PlanningOptions& options_;
  BestPlan& best_;
  OverlapLedger ledger_;
  RelaxedSwaps relaxed_;
  SwapTiming timing_;
  AwaySearch search_;
  AwayDecision packed_;
  KnownPlaces places_;
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
