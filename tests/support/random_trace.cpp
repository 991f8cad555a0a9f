// SPDX-License-Identifier: Apache-2.0
#include "support/random_trace.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include <swapmm/ir/liveness.hpp>

namespace swapmm::test {
namespace {

TraceTensor random_tensor(std::mt19937_64& random, const RandomTraceOptions& options, std::size_t id) {
  TraceTensor tensor;
  tensor.name = "t" + std::to_string(id);
  tensor.bytes = Bytes{1 + below_or_equal(random, options.max_bytes - 1)};
  const std::size_t kind = one_of(random, 5);
  tensor.kind = kind < 2                      ? TensorKind::persistent
                : kind < 4 || !options.inputs ? TensorKind::transient
                                              : TensorKind::input;
  if (tensor.kind == TensorKind::input && chance(random, 0.4)) {
    tensor.available_from = static_cast<std::uint32_t>(one_of(random, options.operations));
  }
  return tensor;
}

}  // namespace

Trace random_trace(std::mt19937_64& random, const RandomTraceOptions& options) {
  Trace trace;
  trace.name = "random";
  for (std::size_t t = 0; t < options.tensors; ++t) trace.tensors.push_back(random_tensor(random, options, t));
  std::vector<bool> written(options.tensors, false);
  std::vector<std::size_t> ids(options.tensors);
  for (std::size_t t = 0; t < ids.size(); ++t) ids[t] = t;

  for (std::size_t i = 0; i < options.operations; ++i) {
    TraceOperation operation;
    operation.name = "op" + std::to_string(i);
    if (!chance(random, 0.15)) {
      operation.duration = std::chrono::nanoseconds{
          static_cast<std::int64_t>(below_or_equal(random, static_cast<std::uint64_t>(options.max_duration)))};
    }
    const std::size_t bundle =
        chance(random, 0.05) ? 0 : 1 + one_of(random, std::min(options.max_bundle, options.tensors));
    for (std::size_t b = 0; b < bundle; ++b) std::swap(ids[b], ids[b + one_of(random, ids.size() - b)]);
    for (std::size_t b = 0; b < bundle; ++b) {
      const std::size_t t = ids[b];
      const TraceTensor& tensor = trace.tensors[t];
      if (i < tensor.available_from) continue;
      const bool undefined = tensor.kind == TensorKind::transient && !written[t];
      const std::size_t access = undefined ? 1 : one_of(random, 4);
      (access == 1   ? operation.writes
       : access == 2 ? operation.updates
                     : operation.reads)
          .push_back(id_at<TensorId>(t));
      if (access == 1 || access == 2) written[t] = true;
    }
    trace.operations.push_back(std::move(operation));
    if (!chance(random, options.host_reads)) continue;
    const std::size_t t = one_of(random, options.tensors);
    const TraceTensor& tensor = trace.tensors[t];
    const bool undefined = (tensor.kind == TensorKind::transient && !written[t]) || i < tensor.available_from;
    if (!undefined) trace.host_reads.push_back({id_at<TensorId>(t), id_at<OperationId>(i)});
  }
  return trace;
}

void add_lingering(Trace& trace, std::mt19937_64& random, double probability) {
  const Liveness liveness = analyze_liveness(trace, Bytes{1});
  const std::size_t n = trace.operations.size();
  for (std::size_t t = 0; t < trace.tensors.size(); ++t) {
    const auto id = id_at<TensorId>(t);
    const bool is_read = std::any_of(trace.host_reads.begin(), trace.host_reads.end(),
                                     [&](const HostRead& read) { return read.tensor == id; });
    if (is_read || trace.tensors[t].kind == TensorKind::input) continue;
    const std::vector<Use>& uses = liveness.uses[t];
    for (std::size_t use = 0; use < uses.size(); ++use) {
      const bool is_last = use + 1 == uses.size();
      const Use& next = uses[is_last ? 0 : use + 1];
      if (next.access != Access::write || !chance(random, probability)) continue;
      const std::size_t last_use = index(uses[use].operation);
      const std::size_t overwritten = index(next.operation) + (is_last ? n : 0);
      const std::size_t until =
          chance(random, 0.3) ? overwritten : last_use + 1 + one_of(random, overwritten - last_use);
      trace.lingering.push_back({id, uses[use].operation, static_cast<std::uint32_t>(until)});
    }
  }
}

std::chrono::nanoseconds compute_of(const Trace& trace) {
  std::chrono::nanoseconds sum{0};
  for (const TraceOperation& operation : trace.operations) sum += operation.duration;
  return sum;
}

Machine random_machine(std::mt19937_64& random, Bytes least_budget) {
  const auto link = [&] {
    Link result;
    result.bytes_per_second = 100'000'000 + below_or_equal(random, 10'000'000'000);
    if (chance(random, 0.5)) result.latency = std::chrono::nanoseconds{static_cast<std::int64_t>(one_of(random, 30))};
    return result;
  };
  Machine machine;
  machine.name = "random";
  constexpr std::uint64_t alignments[] = {1, 1, 4, 8, 12, 64};
  machine.alignment = Bytes{alignments[one_of(random, 6)]};
  const Bytes least = round_up(std::max(least_budget, Bytes{1}), machine.alignment);
  machine.device_budget = least + Bytes{below_or_equal(random, 2 * least.value)};
  if (chance(random, 0.3)) {
    machine.max_allocation = least + Bytes{machine.alignment.value * below_or_equal(random, 4)};
  }
  machine.h2d = link();
  machine.d2h = link();
  machine.duplex = chance(random, 0.3) ? Duplex::half : Duplex::full;
  return machine;
}

Machine random_machine_for(const Trace& trace, std::mt19937_64& random, std::uint64_t percent_of_peak) {
  Machine machine = random_machine(random, Bytes{1});
  machine.max_allocation.reset();
  const Liveness liveness = analyze_liveness(trace, machine.alignment);
  const std::uint64_t least = std::max<std::uint64_t>(liveness.largest_bundle.value, 1);
  const std::uint64_t most = std::max(least, liveness.peak.value * percent_of_peak / 100);
  machine.device_budget = Bytes{least + below_or_equal(random, most - least)};
  return machine;
}

}  // namespace swapmm::test
