// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/ways/turn.hpp>

#include <algorithm>

#include <swapmm/plan/bound.hpp>
#include <swapmm/plan/planners/before_best.hpp>

namespace swapmm::planning {
namespace {

/// The list without its elements at [first, end), which may lie beyond it.
template <class T>
void leave_out_of(std::vector<T>& list, std::size_t first, std::size_t end) {
  const auto at = [&](std::size_t i) { return list.begin() + static_cast<std::ptrdiff_t>(std::min(i, list.size())); };
  list.erase(at(first), at(end));
}

}  // namespace

std::size_t size_of(const WaysBack& ways) { return ways.replays.size() + ways.codings.size(); }

WaysBack without(WaysBack ways, std::size_t first, std::size_t end) {
  const std::size_t replays = ways.replays.size();
  leave_out_of(ways.replays, first, end);
  leave_out_of(ways.codings, std::max(first, replays) - replays, std::max(end, replays) - replays);
  return ways;
}

std::chrono::nanoseconds relaxed_time(const Trace& trace, const ValueHistory& history, const WaysBack& ways,
                                      const Machine& machine, const BoundEffort& effort) {
  const Result<WrittenTrace> written = with_ways(trace, history, ways);
  if (!written) return std::chrono::nanoseconds::max();
  const Result<std::chrono::nanoseconds> bound = lower_bound(written->trace, machine, effort);
  return bound ? *bound : std::chrono::nanoseconds::max();
}

std::optional<Problem> TurnOfBest::begin(WrittenTrace written, const Machine& machine, const BestOptions& options,
                                         const PlanningOptions& limits) {
  trace = std::move(written.trace);
  encoded = std::move(written.encoded);
  Result<PlanningCase> made = make_planning_case(trace, machine);
  if (!made) return made.problem();
  planning.emplace(*std::move(made));
  Result<Plan> first = first_plan_of_best(*planning);
  if (!first) return first.problem();
  std::span<const NamedPlanner> others;
  if (options.others.on) others = planners_before_best();
  run.emplace(*planning, options, limits, others, *std::move(first));
  return std::nullopt;
}

}  // namespace swapmm::planning
