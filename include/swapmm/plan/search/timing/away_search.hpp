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

/// Decisions who is away over which absence, the iteration that comes of them, and the guess that its pass began with.
struct AwayDecision {
  std::vector<char> away;
  double iteration = 0;  ///< ns, by SwapTiming
  std::vector<double> ends;
  double guessed_iteration = 0;
};

/// Searches decisions by SwapTiming: first those that round the relaxed problem's solution, then their neighbours.
class AwaySearch {
 public:
  AwaySearch(SwapTiming& timing, const RelaxedSwaps& relaxed, const RoundingOptions& rounding,
             const AnnealingOptions& annealing);

  /// The best decisions that round the relaxed solution, at several thresholds. False if there are none within the
  /// limits (one bundle alone is above them), or no threshold is given.
  [[nodiscard]] bool round_relaxed();
  /// The decisions found so far, made to fit the limits of the timing as they are now.
  [[nodiscard]] bool fit_again();
  /// So many neighbours: one or two tensors that are away stay, or the other way round; room is made, or filled, by
  /// others. Worse ones are accepted as in annealing, less and less.
  /// Ends early where `is_enough` says so; it is asked now and then.
  void improve(std::size_t tries, const std::function<bool()>& is_enough);

  /// Decisions found elsewhere, within the limits.
  void start_from(AwayDecision decision) { best_ = std::move(decision); }
  [[nodiscard]] const AwayDecision& best() const { return best_; }
  /// The pass of the best decisions, in `timing`.
  double repeat_best();

 private:
  [[nodiscard]] bool make_room(double noise);
  void fill_room(double noise);
  [[nodiscard]] double time_of_decisions(int passes);
  void offer();
  void offer_after(int passes);
  void wish_as_relaxed();
  [[nodiscard]] bool change_some();
  [[nodiscard]] double chance();
  [[nodiscard]] std::uint32_t one_that_is(bool away);

  SwapTiming& timing_;
  const RelaxedSwaps& relaxed_;
  const RoundingOptions& rounding_;
  const AnnealingOptions& annealing_;
  std::vector<double> wish_;             ///< per absence: the larger, the rather it is away
  std::vector<std::uint32_t> free_;      ///< absences that are decided: all but arrivals
  std::vector<std::uint32_t> by_first_;  ///< free_, by the operation they begin at
  AwayDecision best_;
  AwayDecision now_;
  std::mt19937_64 random_{1};
};

}  // namespace swapmm::planning
