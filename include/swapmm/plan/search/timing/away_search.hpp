// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>
#include <utility>
#include <vector>

#include <swapmm/plan/planner_options.hpp>
#include <swapmm/plan/relaxation/lower_bound.hpp>
#include <swapmm/plan/search/timing/swap_timing.hpp>

namespace swapmm::planning {

/// Decisions about which tensors are away over which absences, the resulting iteration, and the guess that its pass
/// began with.
struct AwayDecision {
  std::vector<char> away;
  double iteration = 0;  ///< ns, by SwapTiming
  std::vector<double> ends;
  double guessed_iteration = 0;
  std::vector<std::uint8_t> stores{};  ///< where values are, if there are several stores
  SwapTiming::TimesStored stored{};    ///< when they are there
  double lateness = 0;                 ///< SwapTiming::lateness()
  std::int64_t overrun = 0;            ///< bytes by which stores are too small
};

/// Searches for decisions, with SwapTiming as the measure: first those that round the relaxed problem's solution, then
/// their neighbours.
class AwaySearch {
 public:
  AwaySearch(SwapTiming& timing, const RelaxedSwaps& relaxed, const RoundingOptions& rounding,
             const AnnealingOptions& annealing);

  /// Finds the best decisions that round the relaxed solution, at several thresholds. Returns false if there are none
  /// within the limits (a single bundle is above them), or if no threshold is given.
  [[nodiscard]] bool round_relaxed();
  /// Makes the best decisions fit the present limits of the timing. Returns false if that is impossible.
  [[nodiscard]] bool fit_again();
  /// Tries this many neighbours: one or two tensors that are away stay, or the reverse; others make or fill the room.
  /// Worse decisions are accepted as in annealing, less and less often. Ends early if `is_enough` returns true; it is
  /// called now and then.
  void improve(std::size_t tries, const std::function<bool()>& is_enough);

  /// Searches for decisions that copy fewer bytes, among those whose iteration takes at most `fast_enough` ns: tensors
  /// stay where they are needed again soonest, then as in improve(). The best decisions are those with the fewest
  /// bytes, even if they are slower than before. `is_enough` as in improve().
  void spare_bytes(double fast_enough, std::size_t tries, const std::function<bool()>& is_enough);

  /// Takes over decisions that were found elsewhere. They must be within the limits.
  void start_from(AwayDecision decision) { best_ = std::move(decision); }
  [[nodiscard]] const AwayDecision& best() const { return best_; }
  /// Repeats the pass of the best decisions, which leaves its results in `timing`. Returns the time of the iteration.
  double repeat_best();

 private:
  [[nodiscard]] bool make_room(double noise);
  void fill_room(double noise);
  [[nodiscard]] double time_of_decisions(int passes);
  void offer();
  void offer_after(int passes);
  void wish_as_relaxed();
  void wish_for_few_bytes();
  [[nodiscard]] std::int64_t bytes_copied() const;
  void set_limits(const std::vector<std::int64_t>& limits, double part);
  void adopt(const AwayDecision& decision);
  [[nodiscard]] bool fit_stores();
  [[nodiscard]] bool stay_instead(std::uint32_t kept);
  [[nodiscard]] bool move_some();
  void choose_stores();
  void grant_wishes();
  [[nodiscard]] bool wishes_for_stores() const;
  void round_to_stores(double threshold);
  void try_late_leaving();
  void try_rounded();
  void try_single_stores();
  void share_stores();
  [[nodiscard]] bool change_some();
  [[nodiscard]] double chance();
  [[nodiscard]] std::uint32_t one_that_is(bool away);

  SwapTiming& timing_;
  const RelaxedSwaps& relaxed_;
  const RoundingOptions& rounding_;
  const AnnealingOptions& annealing_;
  std::vector<double> wish_;             ///< per absence: the larger, the sooner the tensor goes out
  std::vector<std::uint32_t> free_;      ///< absences that are decided: no arrivals, and none without length or bytes
  std::vector<std::uint32_t> by_first_;  ///< free_, by the operation at which they begin
  std::vector<std::uint32_t> movable_;   ///< kept values of the timing whose stores are to be chosen
  AwayDecision best_;
  AwayDecision now_;
  std::mt19937_64 random_{1};
};

}  // namespace swapmm::planning
