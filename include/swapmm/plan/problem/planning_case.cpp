// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/problem/planning_case.hpp>

#include <algorithm>
#include <string>
#include <tuple>

#include <swapmm/ir/bundle.hpp>

namespace swapmm::planning {
namespace {

Problem bundle_too_large(const PlanningCase& planning) {
  const Liveness& liveness = planning.liveness;
  const std::size_t operation = index(liveness.largest_bundle_operation);
  const Machine& machine = planning.machine;
  const Bytes bytes = swapmm::detail::bundle_bytes(planning.trace, planning.trace.operations[operation], Bytes{1});
  const std::string rounded = bytes <= machine.device_budget ? " (sizes rounded up to multiples of " +
                                                                   std::to_string(machine.alignment.value) + ")"
                                                             : "";
  return {"operation " + std::to_string(operation) + " (" + planning.trace.operations[operation].name +
          ") needs a bundle of " + std::to_string(liveness.largest_bundle.value) + " bytes" + rounded +
          "; the device budget is " + std::to_string(machine.device_budget.value)};
}

/// The value that lingers after this use; null if none does.
const LingeringValue* lingering_after(const Trace& trace, TensorId tensor, OperationId use) {
  const auto found = std::lower_bound(
      trace.lingering.begin(), trace.lingering.end(), std::tuple(tensor, use),
      [](const LingeringValue& value, const auto& place) { return std::tuple(value.tensor, value.last_use) < place; });
  const bool is_it = found != trace.lingering.end() && found->tensor == tensor && found->last_use == use;
  return is_it ? &*found : nullptr;
}

std::optional<Problem> too_large_for_an_arena(const PlanningCase& planning) {
  if (!planning.machine.max_allocation) return std::nullopt;
  const std::uint64_t most = planning.machine.max_allocation->value;
  for (std::size_t t = 0; t < planning.sizes.size(); ++t) {
    if (planning.sizes[t] <= most || planning.liveness.uses[t].empty()) continue;
    const std::size_t operation = index(planning.liveness.uses[t].front().operation);
    return Problem{"operation " + std::to_string(operation) + " (" + planning.trace.operations[operation].name +
                   ") uses tensor " + std::to_string(t) + " (" + planning.trace.tensors[t].name + ") of " +
                   std::to_string(planning.sizes[t]) + " bytes; the largest allocation is " + std::to_string(most)};
  }
  return std::nullopt;
}

}  // namespace

Result<PlanningCase> make_planning_case(const Trace& trace, const Machine& machine) {
  PlanningCase planning{trace, machine, analyze_liveness(trace, machine.alignment), 0, 0, {}, trace.host_reads, {}};
  planning.operations = static_cast<std::uint32_t>(trace.operations.size());
  planning.budget = round_down(machine.device_budget, machine.alignment).value;
  planning.sizes.reserve(trace.tensors.size());
  for (const TraceTensor& tensor : trace.tensors) {
    planning.sizes.push_back(round_up(tensor.bytes, machine.alignment).value);
  }
  std::sort(planning.host_reads.begin(), planning.host_reads.end(), [](const HostRead& a, const HostRead& b) {
    return std::tie(a.tensor, a.after_operation) < std::tie(b.tensor, b.after_operation);
  });
  planning.first_read.assign(trace.tensors.size() + 1, 0);
  for (const HostRead& read : planning.host_reads) ++planning.first_read[index(read.tensor) + 1];
  for (std::size_t t = 0; t < trace.tensors.size(); ++t) planning.first_read[t + 1] += planning.first_read[t];

  if (planning.liveness.largest_bundle.value > planning.budget) return bundle_too_large(planning);
  if (auto finding = too_large_for_an_arena(planning)) return *finding;
  return planning;
}

std::chrono::nanoseconds compute_time(const Trace& trace) {
  std::chrono::nanoseconds sum{0};
  for (const TraceOperation& operation : trace.operations) sum += operation.duration;
  return sum;
}

std::chrono::nanoseconds copy_time(const Link& link, Bytes bytes) {
  constexpr std::uint64_t second = 1'000'000'000;
  // bytes x 10^9 does not fit 64 bits, so whole seconds come first, then a rest below the bandwidth.
  const std::uint64_t whole = bytes.value / link.bytes_per_second;
  const std::uint64_t rest = bytes.value % link.bytes_per_second;
  __extension__ using Wide = unsigned __int128;
  const Wide scaled = static_cast<Wide>(rest) * second;
  const auto part = static_cast<std::uint64_t>((scaled + link.bytes_per_second - 1) / link.bytes_per_second);
  return link.latency + std::chrono::nanoseconds{static_cast<std::int64_t>(whole * second + part)};
}

std::optional<UseGap> gap_after_use(const PlanningCase& planning, TensorId tensor, std::size_t position) {
  const std::vector<Use>& uses = planning.liveness.uses[index(tensor)];
  const auto from = static_cast<std::uint32_t>(uses[position].operation);
  if (const LingeringValue* const value = lingering_after(planning.trace, tensor, uses[position].operation)) {
    const bool is_last = position + 1 == uses.size();
    const auto next = static_cast<std::uint32_t>(uses[is_last ? 0 : position + 1].operation);
    const std::uint32_t overwritten = is_last ? next + planning.operations : next;
    return UseGap{from, std::min(value->until + 1, overwritten), true, value->until + 1};
  }
  if (position + 1 < uses.size()) {
    const Use& next = uses[position + 1];
    return UseGap{from, static_cast<std::uint32_t>(next.operation), next.access != Access::write};
  }
  if (planning.trace.tensors[index(tensor)].kind != TensorKind::persistent) return std::nullopt;
  return UseGap{from, static_cast<std::uint32_t>(uses.front().operation) + planning.operations,
                uses.front().access != Access::write};
}

}  // namespace swapmm::planning
