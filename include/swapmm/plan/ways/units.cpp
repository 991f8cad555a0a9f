// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/ways/units.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <utility>

#include <swapmm/plan/planners.hpp>
#include <swapmm/plan/ways/bound.hpp>
#include <swapmm/plan/ways/candidate.hpp>
#include <swapmm/plan/ways/program/pieces.hpp>
#include <swapmm/plan/ways/program/written.hpp>

namespace swapmm::planning {
namespace {

/// The longest absence of a tensor's value that may be made again behind it.
std::optional<FeatureMap> longest_absence(const ValueHistory& history, const PlanningCase& planning,
                                          const std::vector<std::uint32_t>& full, TensorId tensor) {
  const std::span<const Use> uses = planning.liveness.uses[index(tensor)];
  std::optional<FeatureMap> longest;
  for (std::size_t i = 0; i + 1 < uses.size(); ++i) {
    const auto last = static_cast<std::uint32_t>(uses[i].operation);
    const auto needed = static_cast<std::uint32_t>(uses[i + 1].operation);
    if (uses[i + 1].access == Access::write || full[needed] == full[last + 1]) continue;
    const std::uint32_t giver = history.giver(tensor, needed);
    if (giver == ValueHistory::nobody || !history.may_run_again(giver, needed)) continue;
    if (longest && needed - last <= longest->needed - longest->last) continue;
    longest = FeatureMap{tensor, giver, last, needed};
  }
  return longest;
}

}  // namespace

std::vector<FeatureMap> find_feature_maps(const Trace& trace, const ValueHistory& history,
                                          const PlanningCase& planning) {
  const std::vector<std::uint32_t> full = count_full(planning);
  std::vector<FeatureMap> maps;
  for (std::size_t t = 0; t < trace.tensors.size(); ++t) {
    if (const auto map = longest_absence(history, planning, full, static_cast<TensorId>(t))) maps.push_back(*map);
  }
  std::ranges::stable_sort(maps, {}, &FeatureMap::giver);
  return maps;
}

void add_chain(const Trace& trace, const ValueHistory& history, std::uint32_t operation, std::uint32_t from,
               std::uint32_t before, std::vector<Replay>& replays) {
  const std::vector<std::uint32_t> group = history.group(operation, before);
  for (const std::uint32_t member : group) {
    const Replay replay{static_cast<OperationId>(member), static_cast<OperationId>(before)};
    if (std::ranges::find(replays, replay) != replays.end()) continue;
    replays.push_back(replay);  // before those that it needs: one of them may need its group
    for (const TensorId input : trace.operations[member].reads) {
      const std::uint32_t giver = history.giver(input, before);
      const bool is_other = std::ranges::find(group, giver) == group.end();
      if (giver == ValueHistory::nobody || giver < from || !is_other) continue;
      if (history.may_run_again(giver, before)) add_chain(trace, history, giver, from, before, replays);
    }
  }
}

UnitChoice::UnitChoice(const Trace& trace, const ValueHistory& history, const PlanningCase& planning)
    : trace_(trace), history_(history), planning_(planning), maps_(find_feature_maps(trace, history, planning)) {}

std::vector<Replay> UnitChoice::choose(std::size_t units, std::size_t recomputed) const {
  return replays_of(units_of(units), recomputed);
}

void UnitChoice::for_each(const CheckpointUnitOptions& options,
                          const std::function<bool(std::vector<Replay>)>& visit) const {
  for (const std::size_t count : options.units) {
    if (count == 0 || count > maps_.size()) continue;
    const std::vector<Unit> units = units_of(count);
    const std::size_t shares = std::min(count, options.shares);
    for (std::size_t share = 1; share <= shares; ++share) {
      if (!visit(replays_of(units, count * share / shares))) return;
    }
  }
}

std::vector<Replay> UnitChoice::replays_of(const std::vector<Unit>& units, std::size_t recomputed) {
  std::vector<Replay> replays;
  for (std::size_t i = 0; i < std::min(recomputed, units.size()); ++i) {
    replays.insert(replays.end(), units[i].replays.begin(), units[i].replays.end());
  }
  return replays;
}

std::vector<UnitChoice::Unit> UnitChoice::units_of(std::size_t count) const {
  double bytes = 0;
  for (const FeatureMap& map : maps_) bytes += static_cast<double>(planning_.sizes[index(map.tensor)]);
  std::vector<Unit> units;
  double before = 0;
  std::size_t first = 0;
  for (std::size_t i = 0; i < maps_.size(); ++i) {
    before += static_cast<double>(planning_.sizes[index(maps_[i].tensor)]);
    const double share = bytes / static_cast<double>(count);
    if (before < share * static_cast<double>(units.size() + 1) && i + 1 < maps_.size()) continue;
    units.push_back(unit_of(first, i + 1));
    first = i + 1;
  }
  std::erase_if(units, [](const Unit& unit) { return unit.replays.empty(); });
  std::ranges::stable_sort(units, [](const Unit& a, const Unit& b) { return a.time * b.bytes < b.time * a.bytes; });
  return units;
}

UnitChoice::Unit UnitChoice::unit_of(std::size_t first, std::size_t end) const {
  Unit unit;
  if (end - first < 2) return unit;  // the checkpoint alone
  std::uint32_t before = maps_[first + 1].needed;
  for (std::size_t i = first + 1; i < end; ++i) before = std::min(before, maps_[i].needed);
  for (std::size_t i = first + 1; i < end; ++i) {
    const FeatureMap& map = maps_[i];
    // It was still there, or may not be made again as early as that: it is copied.
    if (map.last >= before || !history_.may_run_again(map.giver, before)) continue;
    add_chain(trace_, history_, map.giver, maps_[first].giver + 1, before, unit.replays);
    unit.bytes += static_cast<double>(moved_bytes(planning_, map.tensor));
  }
  for (const Replay& replay : unit.replays) {
    unit.time += static_cast<double>(trace_.operations[index(replay.operation)].duration.count());
  }
  return unit;
}

}  // namespace swapmm::planning

namespace swapmm {

Result<PlanWithWays> plan_checkpoint_units(const Trace& trace, const Machine& machine, const PlanningOptions& limits,
                                           const CheckpointUnitOptions& options) {
  using namespace planning;  // NOLINT(*-build-using-namespace)
  if (!trace.engines.empty()) return Problem{"operations name engines"};
  const Result<DividedTrace> whole = with_pieces(only_ways(trace, {.recompute = true, .compress = false}), {});
  if (!whole) return whole.problem();
  const Trace plain = without_ways(whole->trace);
  const Result<PlanningCase> planning = make_planning_case(plain, machine);
  if (!planning) return planning.problem();
  const ValueHistory history(whole->trace);
  const UnitChoice choice(whole->trace, history, *planning);
  WaysBack best;
  auto least = std::chrono::nanoseconds::max();
  const auto offer = [&](std::vector<Replay> replays) {
    WaysBack ways{std::move(replays), {}, {}};
    const std::chrono::nanoseconds rating = relaxed_time(whole->trace, history, ways, machine, options.rating);
    if (rating >= least) return;
    least = rating;
    best = std::move(ways);
  };
  offer({});
  if (limits.ways.recompute) {
    choice.for_each(options, [&](std::vector<Replay> replays) {
      offer(std::move(replays));
      return true;
    });
  }
  const Result<WrittenTrace> written = with_ways(whole->trace, history, best);
  if (!written) return written.problem();
  Result<Plan> plan = excess_overlap_planner(options.copies).make(written->trace, machine, limits);
  if (!plan) return plan.problem();
  plan->planner = "checkpoint-units";
  plan->predicted.lower_bound = std::min(ways_bound(whole->trace, history, *planning), plan->predicted.iteration);
  return PlanWithWays{std::move(best), *std::move(plan)};
}

}  // namespace swapmm
