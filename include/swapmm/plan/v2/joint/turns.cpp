// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/v2/joint/turns.hpp>

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>

namespace swapmm::v2::planning {
namespace {

/// A copy on a shared capacity.
struct Turn {
  double time = 0;
  std::size_t rank = 0;
  std::uint32_t command = 0;
};

/// Of each command: its time alone, put into its device's window. It ascends within a device, so that this order agrees
/// with the order in which the device's commands can run.
std::vector<double> window_times(const SpreadPlan& spread, const std::vector<const SoloTimes*>& solo,
                                 const Turns& turns) {
  const std::size_t parts = solo.size();
  std::vector<double> starts(parts, 0);
  std::vector<double> factors(parts, 1);
  for (std::size_t p = 0; p < parts; ++p) {
    const double alone = std::min(solo[p]->iteration, turns.period);
    const double length = alone + turns.overlap * (turns.period - alone);
    if (solo[p]->iteration > 0) factors[p] = length / solo[p]->iteration;
    starts[p] = (turns.period - length) * turns.positions[p];
  }
  std::vector<double> latest(parts, -std::numeric_limits<double>::infinity());
  std::vector<double> times;
  times.reserve(spread.origins.size());
  for (const CommandOrigin& origin : spread.origins) {
    double& last = latest[origin.part];
    last = std::max(last, solo[origin.part]->starts[origin.command]);
    times.push_back(starts[origin.part] + factors[origin.part] * last);
  }
  return times;
}

/// Of each part: the number of parts that go before it.
std::vector<std::size_t> ranks_of(const std::vector<double>& positions) {
  std::vector<std::size_t> order(positions.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t part) { return positions[part]; });
  std::vector<std::size_t> ranks(positions.size());
  for (std::size_t rank = 0; rank < order.size(); ++rank) ranks[order[rank]] = rank;
  return ranks;
}

/// How many copies keep a capacity busy.
std::size_t copies_at_once(const Machine& machine, CapacityId capacity) {
  std::uint64_t fastest = 1;
  for (const Link& link : machine.links) {
    if (std::ranges::count(link.capacities, capacity) != 0) fastest = std::max(fastest, link.bytes_per_second);
  }
  const std::uint64_t all = machine.capacities[index(capacity)].bytes_per_second;
  return static_cast<std::size_t>(std::max<std::uint64_t>((all + fastest - 1) / fastest, 1));
}

void take_turns_on(CapacityId capacity, SpreadPlan& spread, const std::vector<double>& times,
                   const std::vector<std::size_t>& ranks, Turns::Who who) {
  const Machine& machine = spread.plan.machine;
  std::vector<Command>& commands = spread.plan.commands;
  std::vector<Turn> order;
  for (std::uint32_t c = 0; c < commands.size(); ++c) {
    if (commands[c].kind != CommandKind::copy) continue;
    if (std::ranges::count(machine.links[index(commands[c].link)].capacities, capacity) == 0) continue;
    order.push_back({times[c], ranks[spread.origins[c].part], c});
  }
  std::ranges::sort(order, {}, [](const Turn& turn) { return std::tuple(turn.time, turn.rank, turn.command); });
  const std::size_t at_once = copies_at_once(machine, capacity);
  const std::size_t parts = ranks.size();
  std::vector<std::optional<std::uint32_t>> last(parts);  // of each rank: its last copy so far
  // Of each rank and link: for what its copies wait already.
  std::vector<std::vector<std::optional<std::uint32_t>>> waited(machine.links.size(),
                                                                std::vector<std::optional<std::uint32_t>>(parts));
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (i >= at_once) last[order[i - at_once].rank] = order[i - at_once].command;
    Command& command = commands[order[i].command];
    for (std::size_t rank = 0; rank < parts; ++rank) {
      const bool is_before = who == Turns::Who::all ? rank != order[i].rank : rank < order[i].rank;
      auto& known = waited[index(command.link)][rank];
      if (!is_before || !last[rank] || known == last[rank]) continue;
      known = last[rank];
      command.after.push_back({Wait::On::command, false, static_cast<std::int32_t>(*last[rank])});
    }
  }
}

}  // namespace

void take_turns(SpreadPlan& spread, const std::vector<const SoloTimes*>& solo, const Turns& turns) {
  if (turns.who == Turns::Who::nobody) return;
  const std::vector<double> times = window_times(spread, solo, turns);
  const std::vector<std::size_t> ranks = ranks_of(turns.positions);
  for (std::size_t c = 0; c < spread.plan.machine.capacities.size(); ++c) {
    take_turns_on(id_at<CapacityId>(c), spread, times, ranks, turns.who);
  }
}

}  // namespace swapmm::v2::planning
