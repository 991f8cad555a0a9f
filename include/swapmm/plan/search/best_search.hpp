// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include <swapmm/plan/planner.hpp>
#include <swapmm/plan/planner_options.hpp>
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

/// What differs if the values that leave are spread over several stores.
struct StoreCase {
  LinkedStores stores;
  RelaxedSwaps relaxed;  ///< of the ledger for these stores
  double part = 1;       ///< of each store's capacity that the search fills
};

/// The search of the planner `best` (docs/planning.md): relax, round, anneal, pack, fill, and repeat. Keeps references
/// to all arguments of the constructor except `go_on_relaxing`.
class BestSearch {
 public:
  /// Plans that are found are offered to `best`. `go_on_relaxing`: see relax_swaps().
  BestSearch(const PlanningCase& planning, const BestOptions& options, const PlanningOptions& limits, BestPlan& best,
             const std::function<bool()>& go_on_relaxing = {}, const StoreCase* stores = nullptr);

  /// run_rounds(), then what comes at the end.
  void run(std::span<const NamedPlanner> others, std::optional<int> most_rounds) {
    run_rounds(others, most_rounds);
    polish();
  }
  /// Searches until the plan is near the bound, PlanningOptions::go_on returns false, or `most_rounds` rounds are done.
  /// Also tries `others`, once: at first if the trace is small; if it is of medium size, after a round that gained next
  /// to nothing or after `most_rounds`. Called again, it goes on from its best decisions.
  void run_rounds(std::span<const NamedPlanner> others, std::optional<int> most_rounds);
  /// The end of a search: spares bytes, and lets tensors return earlier than they must.
  void polish();

  /// Looks for plans that are as fast as the best one, or near the bound, and move fewer bytes. Not for large traces.
  void spare_bytes();

  /// Offers Belady's plan if nothing has packed yet, once. Its stays hold only the room in use, and so pack more
  /// easily. Does not call PlanningOptions::go_on.
  void offer_belady();

  [[nodiscard]] const OverlapLedger& ledger() const { return ledger_; }
  [[nodiscard]] bool takes_long() const { return is_large(); }
  /// The number of rounds after which the search ends if there is no PlanningOptions::go_on.
  [[nodiscard]] int rounds_without_clock() const {
    return std::max(work() < options_.few_rounds_above ? options_.rounds : options_.rounds_of_large, 0);
  }

  [[nodiscard]] std::chrono::nanoseconds lower_bound() const { return relaxed_.lower_bound; }
  /// No plan is looked for that takes longer than this: a round ends where its decisions, with room for every value,
  /// take longer.
  void give_up_above(std::chrono::nanoseconds most) { most_time_ = most; }
  /// A bound that was found elsewhere.
  void know_bound(std::chrono::nanoseconds bound) { relaxed_.lower_bound = std::max(relaxed_.lower_bound, bound); }
  /// Plans up to this time count as equal to the bound: the difference is not worth a search.
  [[nodiscard]] std::chrono::nanoseconds near_bound() const {
    return options_.near_bound > 0 ? lower_bound() + lower_bound() / options_.near_bound : lower_bound();
  }
  [[nodiscard]] bool is_near_bound() const { return best_.simulation().iteration <= near_bound(); }
  [[nodiscard]] bool is_out_of_time() const { return limits_.go_on && !limits_.go_on(progress()); }

 private:
  /// The effort of one round.
  struct Effort {
    std::size_t tries = 0;            ///< neighbours before packing
    int packings = 0;                 ///< number of parts of the budget that are tried
    double first_part = 1;            ///< the first part of the budget that is tried
    std::uint32_t packing_steps = 0;  ///< of each packing
    PlaceSearch::Effort places;       ///< of each packing
  };

  /// The decisions of a plan that was the best one when it was found, and its rank.
  struct BestPlaced {
    PlacedDecisions decisions;
    BestPlan::Rank rank;
  };

  [[nodiscard]] std::size_t work() const { return planning_.operations + ledger_.absences.size(); }
  [[nodiscard]] bool is_small() const { return work() <= options_.others.small; }
  [[nodiscard]] bool is_large() const { return work() > options_.others.large; }
  [[nodiscard]] bool others_have_a_turn() const {
    return rounds_done_ >= options_.others.round && !is_small() && !is_large();
  }
  [[nodiscard]] Effort effort_of(int round) const;
  [[nodiscard]] Effort near_effort(int round) const;
  [[nodiscard]] bool is_done() const;
  [[nodiscard]] PlanningProgress progress() const { return {best_.simulation().iteration, relaxed_.lower_bound}; }

  void try_others(std::span<const NamedPlanner> others);
  [[nodiscard]] bool gained_since(std::chrono::nanoseconds before, double part) const;
  void offer_leaner();
  void place_first();
  void search_round(const Effort& effort);
  void go_on_from(const AwayDecision& decision);
  void search_near_best(const Effort& effort);
  void search_once_near_best(const Effort& effort);
  [[nodiscard]] std::vector<std::uint8_t> stores_of(const PlacedDecisions& placed,
                                                    std::vector<std::uint8_t> stores) const;
  void set_limits_to(const std::vector<Stay>& stays);
  void set_limits(double part);
  void place(const AwayDecision& found, const Effort& effort);
  void place_first_parts(const AwayDecision& found, const Effort& effort);
  void place_near_last_part(const AwayDecision& found, const Effort& effort);
  [[nodiscard]] bool decide_within(double part, const AwayDecision& found, const Effort& effort);
  bool place_once(const Effort& effort, const AwayDecision& found);
  [[nodiscard]] bool shorten_unplaced(const std::vector<Stay>& stays, const std::vector<std::uint32_t>& unplaced);
  [[nodiscard]] bool shorten(const Stay& stay);
  void search_places(const BuiltPlan& built, const AwayDecision& found, const Effort& effort,
                     std::optional<PlacedDecisions> found_best);

  const PlanningCase& planning_;
  const BestOptions& options_;
  const PlanningOptions& limits_;
  BestPlan& best_;
  OverlapLedger ledger_;
  RelaxedSwaps relaxed_;
  SwapTiming timing_;
  AwaySearch search_;
  KnownPlaces places_;
  PlaceSearch place_search_;
  std::optional<BestPlaced> best_placed_;
  std::optional<std::chrono::nanoseconds> most_time_;
  bool spares_bytes_ = false;   ///< fewer bytes count, not time: the bound is no reason to end
  std::optional<double> part_;  ///< of the budget, near the largest that packs; none: none has packed yet
  int steps_alike_ = 0;         ///< the last steps of `part_` in one direction: above 0 up, below 0 down
  bool has_packed_ = false;
  bool tried_others_ = false;
  bool offered_belady_ = false;
  int rounds_done_ = 0;
};

}  // namespace swapmm::planning
