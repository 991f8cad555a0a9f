// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/v2/long_run/turn.hpp>

#include <algorithm>
#include <cstddef>
#include <unordered_map>
#include <utility>

namespace swapmm::v2::long_run {
namespace {

/// What is under way at the end of a turn was under way at its beginning, too, one turn earlier: it ends one turn after
/// that.
void set_ends(std::vector<ElementRun>& under_way, const std::vector<ElementRun>& ended, Time begin, Time length) {
  std::unordered_map<std::uint32_t, Time> known;
  for (const ElementRun& run : ended) {
    if (run.start <= begin) known.try_emplace(run.element, *run.end);
  }
  for (ElementRun& run : under_way) {
    const auto found = known.find(run.element);
    if (found != known.end()) run.end = found->second + length;
  }
}

}  // namespace

Turn run_one_turn(EventRun& run, const SteadyState& steady) {
  const std::vector<Time>& ends = run.iteration_ends();
  const std::size_t before = ends.size();
  Turn turn;
  turn.iterations_before = before;
  turn.begin = turn.end = before == 0 ? Time{0} : ends.back();
  turn.repeats = steady.period != 0;
  turn.occupied = run.occupation().occupied();

  RunLog log;
  run.log_to(&log);
  const std::size_t wanted = before + std::max<std::size_t>(steady.period, 1);
  // If a turn takes time, everything at its end can happen, because no further iteration ends then.
  const bool settles = turn.repeats && ends[before - 1 - steady.period] < ends.back();
  while (ends.size() < wanted && run.step(settles ? wanted + 1 : wanted)) {
  }
  run.log_to(nullptr);

  turn.iteration_ends.assign(ends.begin() + static_cast<std::ptrdiff_t>(before), ends.end());
  if (!turn.iteration_ends.empty()) turn.end = turn.iteration_ends.back();
  std::vector<ElementRun> under_way = run.under_way();
  if (turn.repeats) set_ends(under_way, log.ended, turn.begin, turn.end - turn.begin);
  turn.runs = std::move(log.ended);
  for (const ElementRun& one : under_way) {
    if (one.start < turn.end) turn.runs.push_back(one);
  }
  std::ranges::stable_sort(turn.runs, {}, &ElementRun::start);
  for (const RunLog::Change& change : log.changes) {
    if (change.time < turn.end) turn.changes.push_back(change);
  }
  return turn;
}

}  // namespace swapmm::v2::long_run
