// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>
#include <utility>
#include <vector>

#include <swapmm/plan/relaxation/lower_bound.hpp>
#include <swapmm/plan/search/timing/swap_timing.hpp>

namespace swapmm::planning {

/// Decisions on who is away over which absence, the resulting iteration time, and the guess that its pass began with.
struct AwayDecision {
  std::vector<char> away;
  double iteration = 0;  ///< in ns, by SwapTiming
  std::vector<double> ends;
  double guessed_iteration = 0;
};

/// Searches decisions with SwapTiming as measure: first roundings of the relaxed problem's solution, then their
/// neighbours.
class AwaySearch {
 public:
  AwaySearch(SwapTiming& timing, const RelaxedSwaps& relaxed);

  /// Finds the best rounding of the relaxed solution, at several thresholds. Returns false if there is none within the
  /// limits, because a bundle alone is above them.
  [[nodiscard]] bool round_relaxed();
  /// Makes the decisions found so far fit the current limits of the timing.
  [[nodiscard]] bool fit_again();
  /// Tries this many neighbours: one or two tensors that are away stay, or the other way round, and others make or fill
  /// the room. Accepts worse ones as in annealing, less and less. Ends early if `is_enough` returns true; it is called
  /// now and then.
  void improve(std::size_t tries, const std::function<bool()>& is_enough);

  /// Takes decisions found elsewhere, which are within the limits.
  void start_from(AwayDecision decision) { best_ = std::move(decision); }
  [[nodiscard]] const AwayDecision& best() const { return best_; }
  /// Repeats the pass of the best decisions in `timing`.
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
  std::vector<double> wish_;             ///< per absence: the larger, the more it should be away
  std::vector<std::uint32_t> free_;      ///< absences that are decided: all but arrivals
  std::vector<std::uint32_t> by_first_;  ///< free_, by the operation they begin at
  AwayDecision best_;
  AwayDecision now_;
  std::mt19937_64 random_{1};
};

}  // namespace swapmm::planning
