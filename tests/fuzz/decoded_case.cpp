// SPDX-License-Identifier: Apache-2.0
#include "fuzz/decoded_case.hpp"

#include <algorithm>
#include <bitset>
#include <vector>

#include <swapmm/plan/planners.hpp>

namespace swapmm::fuzz {
namespace {

TraceTensor decoded_tensor(Decoder& in, std::size_t operations) {
  TraceTensor tensor;
  const std::uint8_t shape = in.byte();
  tensor.kind = static_cast<TensorKind>(shape % 3);
  tensor.bytes = Bytes{in.any_size()};
  if (tensor.kind == TensorKind::input && (shape & 0x80U) != 0) {
    tensor.available_from = static_cast<std::uint32_t>(in.one_of(operations));
  }
  return tensor;
}

TraceOperation decoded_operation(Decoder& in, const Trace& trace, std::size_t position, std::vector<bool>& has_value) {
  TraceOperation operation;
  operation.duration = std::chrono::nanoseconds{static_cast<std::int64_t>(in.any_size())};
  const std::size_t accesses = in.one_of(5);
  std::bitset<most_tensors> seen;
  for (std::size_t i = 0; i < accesses && !trace.tensors.empty(); ++i) {
    const std::uint8_t access = in.byte();
    const std::size_t id = access / 4 % trace.tensors.size();
    const TraceTensor& tensor = trace.tensors[id];
    if (seen[id] || position < tensor.available_from) continue;
    seen.set(id);
    const bool must_write = tensor.kind == TensorKind::transient && !has_value[id];
    auto& list = must_write || access % 4 == 1 ? operation.writes
                 : access % 4 == 2             ? operation.updates
                                               : operation.reads;
    list.push_back(id_at<TensorId>(id));
    has_value[id] = true;
  }
  return operation;
}

}  // namespace

Trace decoded_trace(Decoder& in) {
  Trace trace;
  const std::size_t tensors = in.one_of(most_tensors + 1);
  const std::size_t operations = 1 + in.one_of(most_operations);
  const std::size_t host_reads = in.one_of(4);
  for (std::size_t i = 0; i < tensors; ++i) trace.tensors.push_back(decoded_tensor(in, operations));
  std::vector<bool> has_value(tensors);
  for (std::size_t i = 0; i < operations; ++i) {
    trace.operations.push_back(decoded_operation(in, trace, i, has_value));
  }
  for (std::size_t i = 0; i < host_reads && tensors > 0; ++i) {
    const auto tensor = id_at<TensorId>(in.one_of(tensors));
    const auto operation = id_at<OperationId>(in.one_of(operations));
    trace.host_reads.push_back({tensor, operation});
    // Most values of transients do not exist where any byte points.
    if (!check_trace(trace)) trace.host_reads.pop_back();
  }
  return trace;
}

Machine decoded_machine(Decoder& in, const Trace& trace) {
  Machine machine;
  const std::uint8_t shape = in.byte();
  if ((shape & 1U) != 0) machine.duplex = Duplex::half;
  if ((shape & 2U) != 0) machine.alignment = Bytes{in.small()};
  const auto rounded = [&](const TraceTensor& tensor) {
    return (tensor.bytes.value + machine.alignment.value - 1) / machine.alignment.value * machine.alignment.value;
  };
  std::uint64_t all = 0;
  for (const TraceTensor& tensor : trace.tensors) all += rounded(tensor);
  std::uint64_t bundle = 0;
  for (const TraceOperation& operation : trace.operations) {
    std::uint64_t sum = 0;
    for_each_access(operation, [&](TensorId id, Access) { sum += rounded(trace.tensors[index(id)]); });
    bundle = std::max(bundle, sum);
  }
  const std::uint64_t part = in.byte();
  machine.device_budget = Bytes{
      (shape & 4U) != 0 ? in.any_size() : bundle + (all - bundle) / 256 * part + (all - bundle) % 256 * part / 256};
  if ((shape & 8U) != 0) machine.max_allocation = Bytes{machine.alignment.value * in.any_size()};
  const auto link = [&] { return Link{in.any_size(), std::chrono::nanoseconds{(shape & 16U) != 0 ? in.byte() : 0}}; };
  machine.h2d = link();
  machine.d2h = (shape & 32U) != 0 ? link() : machine.h2d;
  return machine;
}

bool clock_suffices(const Trace& trace, const Machine& machine) {
  double iteration = 0;
  const auto copy = [&](const Link& link, Bytes bytes) {
    iteration += static_cast<double>(link.latency.count()) +
                 1e9 * static_cast<double>(bytes.value) / static_cast<double>(link.bytes_per_second);
  };
  for (const TraceOperation& operation : trace.operations) {
    iteration += static_cast<double>(operation.duration.count());
    for_each_access(operation, [&](TensorId id, Access) {
      copy(machine.h2d, trace.tensors[index(id)].bytes);
      copy(machine.d2h, trace.tensors[index(id)].bytes);
    });
  }
  return iteration < 0x1p52;
}

std::string_view decoded_planner(Decoder& in) { return planners()[in.one_of(planners().size())].name; }

}  // namespace swapmm::fuzz
