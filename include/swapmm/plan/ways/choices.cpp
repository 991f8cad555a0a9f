// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/ways/choices.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <span>

namespace swapmm::planning {

WayChoice::WayChoice(const Trace& trace, const ValueHistory& history, const PlanningCase& planning)
    : trace_(trace), history_(history), planning_(planning), full_(count_full(planning)) {
  started_.assign(trace.operations.size() + 1, 0.0);
  readers_.assign(trace.tensors.size(), 0);
  made_.assign(trace.tensors.size(), 0.0);
  for (std::size_t t = 0; t < trace.tensors.size(); ++t) {
    const std::vector<Use>& uses = planning.liveness.uses[t];
    if (uses.empty()) continue;
    made_[t] = 1 - 2 * static_cast<double>(index(uses.front().operation)) / static_cast<double>(planning.operations);
  }
  for (std::size_t i = 0; i < trace.operations.size(); ++i) {
    started_[i + 1] = started_[i] + static_cast<double>(trace.operations[i].duration.count());
    if (!trace.operations[i].replayable) continue;
    for (const TensorId input : trace.operations[i].reads) ++readers_[index(input)];
  }
}

WaysBack WayChoice::choose(const WayCriteria& criteria) {
  criteria_ = criteria;
  chosen_ = {};
  here_.assign(trace_.tensors.size(), -1);
  by_replay_.assign(trace_.tensors.size(), false);
  coded_.assign(trace_.tensors.size(), std::nullopt);
  for (std::uint32_t i = 0; i < trace_.operations.size(); ++i) {
    chains_.clear();
    for_each_access(trace_.operations[i], [&](TensorId tensor, Access access) {
      if (access != Access::write && is_far(tensor, i)) bring_back(tensor, i);
    });
    for_each_access(trace_.operations[i], [&](TensorId tensor, Access) {
      here_[index(tensor)] = i;
      by_replay_[index(tensor)] = false;
    });
  }
  return chosen_;
}

void WayChoice::bring_back(TensorId tensor, std::uint32_t before) {
  double cost = price_of(tensor);
  const std::optional<Coding> coding = best_coding(tensor, before, cost);
  const std::uint32_t made_by = maker(tensor, before);
  if (made_by != ValueHistory::nobody && chain_cost(made_by, before, 0) < cost) return add(made_by, before, 0);
  if (!coding) return;
  chosen_.codings.push_back(*coding);
  coded_[index(tensor)] = coding;
}

std::optional<Coding> WayChoice::best_coding(TensorId tensor, std::uint32_t before, double& cost) const {
  const std::int64_t last = here_[index(tensor)];
  if (!criteria_.codings || last < 0 || by_replay_[index(tensor)]) return std::nullopt;
  const auto after = static_cast<std::uint32_t>(last);
  if (!history_.may_be_coded(tensor, after, before)) return std::nullopt;
  const std::optional<Coding>& known = coded_[index(tensor)];
  std::optional<Coding> best;
  const std::span<const TensorForm> forms = forms_of(trace_, tensor);
  for (std::uint32_t f = 0; f < forms.size(); ++f) {
    Coding coding{tensor, f, static_cast<OperationId>(after), static_cast<OperationId>(before)};
    double costs = static_cast<double>(forms[f].decode.count()) + price_of(tensor, forms[f].expected.value);
    // The encoded value of an earlier absence is still the same.
    const bool is_kept =
        known && known->form == f && history_.may_be_coded(tensor, static_cast<std::uint32_t>(known->after), before);
    if (is_kept) coding.after = known->after;
    if (!is_kept) costs += static_cast<double>(forms[f].encode.count());
    if (costs >= cost) continue;
    cost = costs;
    best = coding;
  }
  return best;
}

bool WayChoice::is_far(TensorId tensor, std::uint32_t position) const {
  const std::int64_t last = here_[index(tensor)];
  if (last + 1 >= static_cast<std::int64_t>(position)) return false;
  const auto from = static_cast<std::size_t>(last + 1);
  if (full_[position] == full_[from]) return false;  // there was room for everything
  const Bytes bytes = copied_bytes(trace_.tensors[index(tensor)]);
  auto least = copy_time(planning_.machine.h2d, bytes) + copy_time(planning_.machine.d2h, bytes);
  const std::uint32_t made_by = history_.giver(tensor, position);
  if (made_by != ValueHistory::nobody) least = std::min(least, trace_.operations[made_by].duration);
  return started_[position] - started_[from] >= criteria_.least_away * static_cast<double>(least.count());
}

double WayChoice::price_of(TensorId tensor, std::uint64_t bytes) const {
  double dearer = criteria_.dearer.empty() ? 1.0 : criteria_.dearer[index(tensor)];
  if (criteria_.tilt != 0) dearer *= std::exp(criteria_.tilt * made_[index(tensor)]);
  return criteria_.copy_price * dearer * static_cast<double>(bytes);
}

double WayChoice::price_of(TensorId tensor) const { return price_of(tensor, moved_bytes(planning_, tensor)); }

std::uint32_t WayChoice::maker(TensorId tensor, std::uint32_t before) const {
  if (!criteria_.replays) return ValueHistory::nobody;
  const std::uint32_t giver = history_.giver(tensor, before);
  return giver != ValueHistory::nobody && history_.may_run_again(giver, before) ? giver : ValueHistory::nobody;
}

bool WayChoice::is_needed_from(TensorId tensor, std::uint32_t position) const {
  if (trace_.tensors[index(tensor)].kind == TensorKind::persistent) return true;
  const std::span<const Use> uses = uses_from(planning_.liveness, tensor, position);
  return !uses.empty() && uses.front().access != Access::write;
}

double WayChoice::chain_cost(std::uint32_t operation, std::uint32_t before, std::uint32_t depth) {
  if (depth >= criteria_.longest_chain) return std::numeric_limits<double>::infinity();
  if (const auto known = chains_.find(operation); known != chains_.end()) return known->second;
  double cost = 0;
  const std::vector<std::uint32_t> group = history_.group(operation, before);
  for (const std::uint32_t again : group) {
    cost += static_cast<double>(trace_.operations[again].duration.count());
    for_each_input(group, again, [&](TensorId input) { cost += cost_of_input(input, before, depth + 1); });
  }
  chains_[operation] = cost;
  return cost;
}

double WayChoice::cost_of_input(TensorId tensor, std::uint32_t before, std::uint32_t depth) {
  // What is needed later anyway comes back or is made again then: that it happens now costs nothing more.
  if (!is_far(tensor, before) || is_needed_from(tensor, before)) return 0;
  const std::uint32_t made_by = maker(tensor, before);
  // Kept for one replay, it is there for those of its other readers.
  const double copied = price_of(tensor) / std::max<std::uint32_t>(readers_[index(tensor)], 1);
  return made_by == ValueHistory::nobody ? copied : std::min(copied, chain_cost(made_by, before, depth));
}

void WayChoice::add(std::uint32_t operation, std::uint32_t before, std::uint32_t depth) {
  const auto is_there = [&](TensorId tensor) {
    here_[index(tensor)] = std::int64_t{before} - 1;
    by_replay_[index(tensor)] = true;
  };
  const std::vector<std::uint32_t> group = history_.group(operation, before);
  for (const std::uint32_t member : group) {
    for_each_input(group, member, [&](TensorId input) {
      if (is_far(input, before)) {
        const std::uint32_t made_by = maker(input, before);
        const bool again = made_by != ValueHistory::nobody && chain_cost(made_by, before, depth + 1) < price_of(input);
        if (again) add(made_by, before, depth + 1);
      }
      is_there(input);
    });
    for_each_access(trace_.operations[member], [&](TensorId output, Access access) {
      if (access != Access::read) is_there(output);
    });
    chosen_.replays.push_back({static_cast<OperationId>(member), static_cast<OperationId>(before)});
  }
}

std::vector<double> WayChoice::prices() const {
  std::vector<double> prices;
  for (const TraceOperation& operation : trace_.operations) {
    if (!operation.replayable) continue;
    std::uint64_t bytes = 0;
    for (const TensorId made : operation.writes) bytes = std::max(bytes, moved_bytes(planning_, made));
    for (const TensorId made : operation.updates) bytes = std::max(bytes, moved_bytes(planning_, made));
    if (bytes != 0) prices.push_back(static_cast<double>(operation.duration.count()) / static_cast<double>(bytes));
  }
  for (const TensorForm& form : trace_.forms) {
    const auto saved =
        static_cast<double>(planning_.sizes[index(form.tensor)]) - static_cast<double>(form.expected.value);
    if (saved > 0) prices.push_back(static_cast<double>((form.encode + form.decode).count()) / saved);
  }
  std::ranges::sort(prices);
  prices.erase(std::unique(prices.begin(), prices.end()), prices.end());
  return prices;
}

}  // namespace swapmm::planning
