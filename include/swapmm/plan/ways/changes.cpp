// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/ways/changes.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <utility>

namespace swapmm::planning {

WayChanges::WayChanges(const Trace& trace, const ValueHistory& history, const PlanningCase& planning)
    : trace_(trace), history_(history), planning_(planning) {
  for (std::uint32_t t = 0; t < trace.tensors.size(); ++t) {
    const auto tensor = static_cast<TensorId>(t);
    const std::vector<Use>& uses = planning.liveness.uses[t];
    for (std::size_t i = 0; i + 1 < uses.size(); ++i) {
      Absence absence{.tensor = tensor,
                      .after = static_cast<std::uint32_t>(uses[i].operation),
                      .before = static_cast<std::uint32_t>(uses[i + 1].operation)};
      if (uses[i + 1].access == Access::write || absence.before == absence.after + 1) continue;
      const std::uint32_t giver = history.giver(tensor, absence.before);
      if (giver != ValueHistory::nobody) absence.group = history.group(giver, absence.before);
      absence.may_be_coded =
          !forms_of(trace, tensor).empty() && history.may_be_coded(tensor, absence.after, absence.before);
      if (!absence.group.empty() || absence.may_be_coded) absences_.push_back(std::move(absence));
    }
  }
}

WaysBack WayChanges::change(WaysBack ways) {
  constexpr std::array<int, 10> counts{1, 1, 1, 1, 1, 1, 2, 2, 2, 3};
  for (int left = counts[below(counts.size())]; left > 0; --left) change_one(ways);
  std::ranges::sort(ways.replays, {},
                    [](const Replay& replay) { return std::pair(index(replay.before), index(replay.operation)); });
  return ways;
}

void WayChanges::change_one(WaysBack& ways) {
  constexpr std::array<int, 6> depths{0, 1, 2, 3, 5, 64};
  const Absence& absence = absences_[below(static_cast<std::uint32_t>(absences_.size()))];
  const std::uint32_t what = below(4);
  if (leave_out(ways, absence) && what != 0) {
    // Without its chain, too, and the others that begin there.
    if (what == 1) {
      std::erase_if(ways.replays, [&](const Replay& replay) { return index(replay.before) == absence.before; });
    }
    return;
  }
  const bool encodes = absence.may_be_coded && (absence.group.empty() || below(2) == 0);
  if (!encodes) return run_again(ways, absence.group, absence.before, depths[below(depths.size())]);
  const auto forms = static_cast<std::uint32_t>(forms_of(trace_, absence.tensor).size());
  ways.codings.push_back({absence.tensor, below(forms), static_cast<OperationId>(absence.after),
                          static_cast<OperationId>(absence.before)});
}

bool WayChanges::leave_out(WaysBack& ways, const Absence& absence) {
  std::size_t count = std::erase_if(ways.codings, [&](const Coding& coding) {
    return coding.tensor == absence.tensor && index(coding.before) == absence.before;
  });
  for (const std::uint32_t member : absence.group) {
    count += static_cast<std::size_t>(
        std::erase(ways.replays, Replay{static_cast<OperationId>(member), static_cast<OperationId>(absence.before)}));
  }
  return count != 0;
}

void WayChanges::run_again(WaysBack& ways, const std::vector<std::uint32_t>& group, std::uint32_t before,
                           int depth) const {
  for (const std::uint32_t member : group) {
    const Replay replay{static_cast<OperationId>(member), static_cast<OperationId>(before)};
    if (std::ranges::find(ways.replays, replay) != ways.replays.end()) continue;
    ways.replays.push_back(replay);
    if (depth == 0) continue;
    for (const TensorId input : trace_.operations[member].reads) {
      const std::uint32_t giver = history_.giver(input, before);
      if (giver == ValueHistory::nobody || is_used_near(input, before)) continue;
      run_again(ways, history_.group(giver, before), before, depth - 1);
    }
  }
}

bool WayChanges::is_used_near(TensorId tensor, std::uint32_t operation) const {
  const std::span<const Use> uses = uses_from(planning_.liveness, tensor, operation == 0 ? 0 : operation - 1);
  return !uses.empty() && index(uses.front().operation) <= operation;
}

}  // namespace swapmm::planning
