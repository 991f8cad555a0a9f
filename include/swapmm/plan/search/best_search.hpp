// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include <swapmm/plan/planner.hpp>
#include <swapmm/plan/problem/overlap_ledger.hpp>
#include <swapmm/plan/problem/planning_case.hpp>
#include <swapmm/plan/relaxation/lower_bound.hpp>
#include <swapmm/plan/schedule/best_plan.hpp>
#include <swapmm/plan/schedule/schedule.hpp>
#include <swapmm/plan/search/places/known_places.hpp>
#include <swapmm/plan/search/places/place_search.hpp>
#include <swapmm/plan/search/timing/away_search.hpp>
#include <swapmm/plan/search/timing/swap_timing.hpp>

namespace swapmm::planning {

/// The search of the planner `best` (docs/planning.md): relax, round, anneal, pack, fill, and repeat. Refers to all of
/// its arguments.
class BestSearch {
 public:
  /// Plans that are found are offered to `best`. `go_on_relaxing` is passed to relax_swaps().
  BestSearch(const PlanningCase& planning, const PlanningOptions& options, BestPlan& best,
             const std::function<bool()>& go_on_relaxing = {});

  /// Runs until the plan is near the bound, the options end it, or after a number of rounds. Runs `others`, too: at
  /// once if the trace is small, later if it is large.
  void run(std::span<const NamedPlanner> others, std::optional<int> most_rounds);

  /// The fallback if nothing packs, or if the time is over before anything was packed. Belady's stays hold no room
  /// beyond what is used, so they pack more easily. Does not call go_on.
  void offer_belady();

  [[nodiscard]] bool takes_long() const { return work() > large; }
  /// What ends a search that nobody else ends.
  [[nodiscard]] int rounds_without_clock() const { return work() < 20'000 ? 2 : 1; }

  [[nodiscard]] std::chrono::nanoseconds lower_bound() const { return relaxed_.lower_bound; }
  /// Plans up to this time count as fast as the bound; the difference is not worth a search.
  [[nodiscard]] std::chrono::nanoseconds near_bound() const { return lower_bound() + lower_bound() / 100'000; }
  [[nodiscard]] bool is_near_bound() const { return best_.simulation().iteration <= near_bound(); }

 private:
  /// The effort of one round.
  struct Effort {
    std::size_t tries = 0;            ///< number of neighbours before packing
    int packings = 4;                 ///< number of parts of the budget that are tried
    double first_part = 1;            ///< the first of these parts
    std::uint32_t packing_steps = 0;  ///< steps of each packing
    PlaceSearch::Effort places;       ///< effort of each place search
  };

  /// The decisions of a former best plan, and its rank.
  struct BestPlaced {
    PlacedDecisions decisions;
    BestPlan::Rank rank;
  };

  static constexpr std::size_t small = 400;     ///< work up to which all planners take almost no time
  static constexpr std::size_t large = 10'000;  ///< work above which a round of the search takes long

  [[nodiscard]] std::size_t work() const { return planning_.operations + ledger_.absences.size(); }
  [[nodiscard]] Effort effort_of(int round) const;
  [[nodiscard]] Effort near_effort(int round) const;
  [[nodiscard]] bool is_done() const;
  [[nodiscard]] bool is_out_of_time() const { return options_.go_on && !options_.go_on(progress()); }
  [[nodiscard]] PlanningProgress progress() const { return {best_.simulation().iteration, relaxed_.lower_bound}; }

  void search(std::span<const NamedPlanner> others, std::optional<int> most_rounds);
  void try_others(std::span<const NamedPlanner> others);
  void place_first();
  void search_round(const Effort& effort);
  void go_on_from(const AwayDecision& decision);
  void search_near_best(const Effort& effort);
  void search_once_near_best(const Effort& effort);
  void set_limits_to(const std::vector<Stay>& stays);
  void set_limits(double part);
  void place(const AwayDecision& found, const Effort& effort);
  [[nodiscard]] bool decide_within(double part, const AwayDecision& found, const Effort& effort);
  bool place_once(const Effort& effort, const AwayDecision& found);
  void search_places(const BuiltPlan& built, const AwayDecision& found, const Effort& effort,
                     std::optional<PlacedDecisions> found_best);

  const PlanningCase& planning_;
  const PlanningOptions& options_;
  BestPlan& best_;
  OverlapLedger ledger_;
  RelaxedSwaps relaxed_;
  SwapTiming timing_;
  AwaySearch search_;
  KnownPlaces places_;
  PlaceSearch place_search_;
  std::optional<BestPlaced> best_placed_;
  bool has_packed_ = false;
  bool offered_belady_ = false;
};

}  // namespace swapmm::planning
