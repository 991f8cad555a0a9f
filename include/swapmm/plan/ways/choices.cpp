// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/recompute/choices.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <limits>
#include <span>

namespace swapmm::planning {

ReplayChoice::ReplayChoice(const Trace& trace, const ValueHistory& history, const PlanningCase& planning)
    : trace_(trace), history_(history), planning_(planning) {
  started_.assign(trace.operations.size() + 1, 0.0);
  full_.assign(trace.operations.size() + 1, 0);
  readers_.assign(trace.tensors.size(), 0);
  for (std::size_t i = 0; i < trace.operations.size(); ++i) {
    started_[i + 1] = started_[i] + static_cast<double>(trace.operations[i].duration.count());
    full_[i + 1] = full_[i] + (planning.liveness.live[i].value > planning.budget ? 1 : 0);
    if (!trace.operations[i].replayable) continue;
    for (const TensorId input : trace.operations[i].reads) ++readers_[index(input)];
  }
}

std::vector<Replay> ReplayChoice::choose(const ReplayCriteria& criteria) {
  criteria_ = criteria;
  chosen_.clear();
  here_.assign(trace_.tensors.size(), -1);
  for (std::uint32_t i = 0; i < trace_.operations.size(); ++i) {
    chains_.clear();
    for_each_access(trace_.operations[i], [&](TensorId tensor, Access access) {
      if (access == Access::write || !is_far(tensor, i)) return;
      const std::uint32_t made_by = maker(tensor, i);
      if (made_by == ValueHistory::nobody || chain_cost(made_by, i, 0) >= price_of(tensor)) return;
      add(made_by, i, 0);
    });
    for_each_access(trace_.operations[i], [&](TensorId tensor, Access) { here_[index(tensor)] = i; });
  }
  return chosen_;
}

bool ReplayChoice::is_far(TensorId tensor, std::uint32_t position) const {
  const std::int64_t last = here_[index(tensor)];
  if (last + 1 >= static_cast<std::int64_t>(position)) return false;
  const auto from = static_cast<std::size_t>(last + 1);
  if (full_[position] == full_[from]) return false;  // there was room for everything
  const Bytes bytes = trace_.tensors[index(tensor)].bytes;
  auto least = copy_time(planning_.machine.h2d, bytes) + copy_time(planning_.machine.d2h, bytes);
  const std::uint32_t made_by = history_.giver(tensor, position);
  if (made_by != ValueHistory::nobody) least = std::min(least, trace_.operations[made_by].duration);
  return started_[position] - started_[from] >= criteria_.least_away * static_cast<double>(least.count());
}

double ReplayChoice::price_of(TensorId tensor) const {
  return criteria_.copy_price * static_cast<double>(planning_.sizes[index(tensor)]);
}

std::uint32_t ReplayChoice::maker(TensorId tensor, std::uint32_t before) const {
  const std::uint32_t giver = history_.giver(tensor, before);
  return giver != ValueHistory::nobody && history_.may_run_again(giver, before) ? giver : ValueHistory::nobody;
}

bool ReplayChoice::is_needed_from(TensorId tensor, std::uint32_t position) const {
  if (trace_.tensors[index(tensor)].kind == TensorKind::persistent) return true;
  const std::span<const Use> uses = uses_from(planning_.liveness, tensor, position);
  return !uses.empty() && uses.front().access != Access::write;
}

double ReplayChoice::chain_cost(std::uint32_t operation, std::uint32_t before, std::uint32_t depth) {
  if (depth >= criteria_.longest_chain) return std::numeric_limits<double>::infinity();
  if (const auto known = chains_.find(operation); known != chains_.end()) return known->second;
  double cost = static_cast<double>(trace_.operations[operation].duration.count());
  for (const TensorId input : trace_.operations[operation].reads) cost += cost_of_input(input, before, depth + 1);
  chains_[operation] = cost;
  return cost;
}

double ReplayChoice::cost_of_input(TensorId tensor, std::uint32_t before, std::uint32_t depth) {
  // What is needed later anyway comes back or is made again then: that it happens now costs nothing more.
  if (!is_far(tensor, before) || is_needed_from(tensor, before)) return 0;
  const std::uint32_t made_by = maker(tensor, before);
  // Kept for one replay, it is there for those of its other readers.
  const double copied = price_of(tensor) / std::max<std::uint32_t>(readers_[index(tensor)], 1);
  return made_by == ValueHistory::nobody ? copied : std::min(copied, chain_cost(made_by, before, depth));
}

void ReplayChoice::add(std::uint32_t operation, std::uint32_t before, std::uint32_t depth) {
  for (const TensorId input : trace_.operations[operation].reads) {
    if (is_far(input, before)) {
      const std::uint32_t made_by = maker(input, before);
      const bool again = made_by != ValueHistory::nobody && chain_cost(made_by, before, depth + 1) < price_of(input);
      if (again) add(made_by, before, depth + 1);
    }
    here_[index(input)] = std::int64_t{before} - 1;
  }
  for (const TensorId output : trace_.operations[operation].writes) here_[index(output)] = std::int64_t{before} - 1;
  chosen_.push_back({static_cast<OperationId>(operation), static_cast<OperationId>(before)});
}

std::vector<double> ReplayChoice::prices() const {
  std::vector<double> prices;
  for (const TraceOperation& operation : trace_.operations) {
    if (!operation.replayable || !operation.updates.empty()) continue;
    std::uint64_t bytes = 0;
    for (const TensorId made : operation.writes) bytes = std::max(bytes, planning_.sizes[index(made)]);
    if (bytes != 0) prices.push_back(static_cast<double>(operation.duration.count()) / static_cast<double>(bytes));
  }
  std::ranges::sort(prices);
  prices.erase(std::unique(prices.begin(), prices.end()), prices.end());
  return prices;
}

}  // namespace swapmm::planning
