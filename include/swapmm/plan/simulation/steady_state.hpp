// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <swapmm/base/bytes.hpp>
#include <swapmm/ir/profile.hpp>
#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/plan.hpp>
#include <swapmm/plan/simulation/dataflow.hpp>

namespace swapmm::simulation {

/// A period: the last `iterations` iterations take `time` and then repeat themselves.
struct Period {
  std::size_t iterations = 1;
  std::int64_t time = 0;  ///< at most Dataflow::end_of_time, which means "or longer"
  std::int64_t mean = 0;  ///< mean time of one iteration, rounded to the nearest nanosecond
  bool exact = true;      ///< false if copies run further and further ahead or behind, or if the clock ends
};

/// Runs iterations until the last ones repeat themselves, or 1,000 of them.
[[nodiscard]] Period run_until_periodic(Dataflow& flow);

/// One turn of a period: the iterations that begin at `origin` and take `time`.
struct Turn {
  std::int64_t origin = 0;
  std::int64_t time = 0;
  std::size_t iterations = 1;
};

/// Runs the turn after a period was found. Calls visit(turn, flow) for each iteration of the turn, in order, with the
/// iteration in `flow`. If the period is one iteration, or if none was found, the turn is the iteration run last.
template <class Visit>
Turn for_each_iteration_of_turn(Dataflow& flow, const Period& period, Visit visit) {
  if (period.iterations == 1 || !period.exact) {
    const Turn turn{flow.iteration_end_before(), flow.iteration_end() - flow.iteration_end_before(), 1};
    visit(turn, flow);
    return turn;
  }
  flow.wind_back();
  const Turn turn{flow.iteration_end(), period.time, period.iterations};
  for (std::size_t i = 0; i < turn.iterations; ++i) {
    flow.advance();
    visit(turn, flow);
  }
  return turn;
}

/// The occupied bytes over the time of a turn, which is a circle: commands may extend into the turns before and after.
class OccupationCircle {
 public:
  OccupationCircle(const Trace& trace, const Plan& plan);

  /// Adds an iteration of the turn.
  void add_iteration(const Turn& turn, const Dataflow& flow);

  /// The levels by time from the turn's origin, at most one per time. Occupations that take no time are left out.
  [[nodiscard]] std::vector<ProfileLevel> levels() &&;

 private:
  struct Change {
    std::int64_t time;
    Bytes bytes;
  };

  void add(const Turn& turn, std::int64_t time, Bytes bytes);

  const Trace& trace_;
  const Plan& plan_;
  Bytes at_origin_;
  std::vector<Change> changes_;
};

}  // namespace swapmm::simulation
