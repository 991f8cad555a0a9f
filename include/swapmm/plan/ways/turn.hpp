// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include <swapmm/plan/problem/planning_case.hpp>
#include <swapmm/plan/search/best.hpp>
#include <swapmm/plan/ways.hpp>
#include <swapmm/plan/ways/history.hpp>
#include <swapmm/plan/ways/written.hpp>

namespace swapmm::planning {

/// Ways that were looked at.
struct Candidate {
  WaysBack ways;
  std::chrono::nanoseconds relaxed{0};  ///< a bound for plans with exactly these ways, for a comparison
};

/// A choice of ways, and the run of `best` for the program that has them written out.
struct TurnOfBest {
  explicit TurnOfBest(Candidate&& candidate) : choice(std::move(candidate)) {}
  TurnOfBest(const TurnOfBest&) = delete;
  TurnOfBest& operator=(const TurnOfBest&) = delete;

  /// Begins the run. A Problem if there is no plan. The arguments but for the first outlive it.
  [[nodiscard]] std::optional<Problem> begin(WrittenTrace written, const Machine& machine, const BestOptions& options,
                                             const PlanningOptions& limits);

  Candidate choice;
  bool is_whole = false;               ///< for the program whose tensors are not divided
  Trace trace;                         ///< as written out
  std::vector<EncodedTensor> encoded;  ///< its tensors behind those of the original
  std::optional<PlanningCase> planning;
  std::optional<BestRun> run;
};

/// The number of ways.
[[nodiscard]] std::size_t size_of(const WaysBack& ways);
/// The ways without those at [first, end), which may lie beyond them. Replays are counted first, then codings.
[[nodiscard]] WaysBack without(WaysBack ways, std::size_t first, std::size_t end);

/// The relaxed problem's time with exactly these ways; the most that there is if they are not possible.
[[nodiscard]] std::chrono::nanoseconds relaxed_time(const Trace& trace, const ValueHistory& history,
                                                    const WaysBack& ways, const Machine& machine,
                                                    const BoundEffort& effort);

}  // namespace swapmm::planning
