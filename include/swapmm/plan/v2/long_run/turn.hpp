// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <swapmm/base/bytes.hpp>
#include <swapmm/plan/v2/simulation/event_run.hpp>
#include <swapmm/plan/v2/simulation/steady_state.hpp>

namespace swapmm::v2::long_run {

using simulation::ElementRun;
using simulation::EventRun;
using simulation::RunLog;
using simulation::SteadyState;
using simulation::Time;

/// One turn of the long run: the iterations after which everything repeats, or one iteration if nothing does.
struct Turn {
  Time begin = 0;  ///< the end of the iteration before
  Time end = 0;    ///< the end of the last iteration of the turn
  bool repeats = false;
  std::vector<Time> iteration_ends;  ///< at least one, unless iterations take too long
  /// What ran in the turn, at least in part, by start. Runs at `begin` that take no time may be at `end` instead, with
  /// an iteration behind those of the turn.
  std::vector<ElementRun> runs;
  std::size_t iterations_before = 0;      ///< the iterations that have ended when the turn begins
  std::vector<Bytes> occupied;            ///< of each memory, when the turn begins
  std::vector<RunLog::Change> changes{};  ///< by time, from `begin` to before `end`
};

/// Runs one turn after run_until_periodic(). If everything repeats, what is under way at the end has the end that it
/// will have.
[[nodiscard]] Turn run_one_turn(EventRun& run, const SteadyState& steady);

}  // namespace swapmm::v2::long_run
