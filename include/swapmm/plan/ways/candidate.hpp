// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>

#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/bound.hpp>
#include <swapmm/plan/machine.hpp>
#include <swapmm/plan/ways.hpp>
#include <swapmm/plan/ways/program/history.hpp>

namespace swapmm::planning {

/// A choice of ways, with its rating.
struct Candidate {
  WaysBack ways;
  std::chrono::nanoseconds relaxed{0};  ///< a bound for plans with exactly these ways, for a comparison
  bool is_close = false;                ///< the rating is WayRating::close()
};

/// The relaxed problem's time with exactly these ways; the largest number that there is if they are not possible.
[[nodiscard]] std::chrono::nanoseconds relaxed_time(const Trace& trace, const ValueHistory& history,
                                                    const WaysBack& ways, const Machine& machine,
                                                    const BoundEffort& effort);

/// For how many choices that are changed at random plans are made. 0: the trace is not small.
[[nodiscard]] std::size_t changes_of(const Trace& trace, const PlannedWaysOptions& options);

/// Rates choices of ways by their relaxed problems.
class WayRating {
 public:
  /// Refers to all arguments.
  WayRating(const Trace& trace, const ValueHistory& history, const Machine& machine, const WaysOptions& options);

  /// Quickly, and often far below the time of any plan.
  [[nodiscard]] std::chrono::nanoseconds quick(const WaysBack& ways) const;
  /// Closer to plans, about ten times as slow, and counted. At least `quick`, the quick rating.
  [[nodiscard]] std::chrono::nanoseconds close(const WaysBack& ways, std::chrono::nanoseconds quick);
  /// How many close ratings are left of WaysOptions::close_work. None from the beginning if they are too few to
  /// compare, or if plans are made for changed choices: these tell more.
  [[nodiscard]] std::size_t close_left() const { return close_left_; }

 private:
  const Trace& trace_;
  const ValueHistory& history_;
  const Machine& machine_;
  const WaysOptions& options_;
  std::size_t close_left_ = 0;
};

/// Tries to do with fewer ways: without many in a row at first, then without fewer. Where accept(fewer) is true, it
/// goes on from there. Ends when single ways were tried, or when go_on(), which is called before each try, returns
/// false.
void leave_ways_out(WaysBack ways, const std::function<bool()>& go_on,
                    const std::function<bool(const WaysBack&)>& accept);

}  // namespace swapmm::planning
