// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/v2/relaxation/merged_host.hpp>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include <swapmm/ir/limits.hpp>
#include <swapmm/plan/v2/engines.hpp>

namespace swapmm::v2::planning {
namespace {

/// The most bytes per second that links can carry together. Links of one engine run one at a time. Each of the others
/// is counted once, for the capacity that limits it most: whatever is counted for a capacity is at most the capacity.
std::uint64_t rate_together(const Machine& machine, const std::vector<LinkId>& links) {
  std::map<EngineId, LinkId> fastest;  // of each engine
  std::map<EngineId, std::size_t> links_of_engine;
  for (const LinkId id : links) {
    const EngineId engine = engine_of(machine, id);
    ++links_of_engine[engine];
    const auto [at, is_new] = fastest.try_emplace(engine, id);
    if (!is_new && machine.links[index(id)].bytes_per_second > machine.links[index(at->second)].bytes_per_second) {
      at->second = id;
    }
  }
  std::map<CapacityId, std::uint64_t> by_capacity;
  std::uint64_t sum = 0;
  const auto add = [](std::uint64_t& to, std::uint64_t rate) { to = std::min(to + rate, limits::magnitude - 1); };
  for (const auto& [engine, id] : fastest) {
    const Link& link = machine.links[index(id)];
    const auto smallest = std::ranges::min_element(
        link.capacities, {}, [&](CapacityId c) { return machine.capacities[index(c)].bytes_per_second; });
    // If the engine has other links, they may use other capacities.
    if (smallest == link.capacities.end() || links_of_engine[engine] > 1) {
      add(sum, link.bytes_per_second);
    } else {
      add(by_capacity[*smallest], link.bytes_per_second);
    }
  }
  for (const auto& [capacity, rate] : by_capacity) {
    add(sum, std::min(rate, machine.capacities[index(capacity)].bytes_per_second));
  }
  return sum;
}

}  // namespace

CutLinks links_across(const Machine& machine, const std::vector<MemoryId>& device) {
  const auto is_device = [&](MemoryId memory) { return std::ranges::find(device, memory) != device.end(); };
  CutLinks links;
  for (std::size_t i = 0; i < machine.links.size(); ++i) {
    const bool from_device = is_device(machine.links[i].from);
    const bool to_device = is_device(machine.links[i].to);
    if (to_device && !from_device) links.in.push_back(id_at<LinkId>(i));
    if (from_device && !to_device) links.out.push_back(id_at<LinkId>(i));
  }
  return links;
}

std::optional<swapmm::Machine> with_one_host(const Machine& machine, MemoryId memory) {
  std::optional<swapmm::Machine> merged = merged_host(machine, memory);
  if (merged) merged->max_allocation = machine.memories[index(memory)].max_allocation;
  return merged;
}

std::optional<MemoryId> only_device(const Machine& machine) {
  std::optional<MemoryId> device;
  for (const Engine& engine : machine.engines) {
    if (!engine.memory) continue;
    if (device && *device != *engine.memory) return std::nullopt;
    device = engine.memory;
  }
  return device && *device != machine.host ? device : std::nullopt;
}

std::optional<swapmm::Machine> merged_host(const Machine& machine, MemoryId memory) {
  return merged_host(machine, std::vector{memory});
}

std::optional<swapmm::Machine> merged_host(const Machine& machine, const std::vector<MemoryId>& device) {
  swapmm::Machine merged;
  merged.name = machine.name;
  for (const MemoryId memory : device) {
    const Memory& one = machine.memories[index(memory)];
    if (!one.bytes) return std::nullopt;
    merged.device_budget += std::min(*one.bytes, Bytes{limits::magnitude - 1 - merged.device_budget.value});
    merged.alignment = device.size() == 1 ? one.alignment : Bytes{1};
  }
  const auto [in, out] = links_across(machine, device);
  // Without links nothing moves; one byte per second stands for that.
  merged.h2d.bytes_per_second = std::max<std::uint64_t>(rate_together(machine, in), 1);
  merged.d2h.bytes_per_second = std::max<std::uint64_t>(rate_together(machine, out), 1);
  // Copies on several links can have their latencies at the same time.
  if (in.size() == 1) merged.h2d.latency = machine.links[index(in[0])].latency;
  if (out.size() == 1) merged.d2h.latency = machine.links[index(out[0])].latency;
  const bool shared = in.size() == 1 && out.size() == 1 && engine_of(machine, in[0]) == engine_of(machine, out[0]);
  merged.duplex = shared ? Duplex::half : Duplex::full;
  return merged;
}

KeptTensors::KeptTensors(const Trace& trace, std::vector<bool> kept) : kept_(std::move(kept)), ids_(kept_.size()) {
  for (std::size_t t = 0; t < kept_.size(); ++t) {
    if (!kept_[t]) continue;
    ids_[t] = id_at<TensorId>(tensors_.size());
    tensors_.push_back(trace.tensors[t]);
  }
}

TraceOperation KeptTensors::of(const TraceOperation& operation) const {
  const auto only_kept = [&](const std::vector<TensorId>& list) {
    std::vector<TensorId> ids;
    for (const TensorId tensor : list) {
      if (kept_[index(tensor)]) ids.push_back(id(tensor));
    }
    return ids;
  };
  return {operation.name, operation.duration, only_kept(operation.reads), only_kept(operation.writes),
          only_kept(operation.updates)};
}

Trace part_on_engine(const Trace& trace, const Machine& machine, EngineId engine) {
  const detail::Engines engines(trace, machine);
  bool alone = true;
  for (std::size_t i = 0; i < trace.operations.size(); ++i) {
    alone = alone && engines.engine(id_at<OperationId>(i)) == engine;
  }
  if (alone && !needs_version_2(trace)) return trace;
  constexpr std::uint32_t unused = std::numeric_limits<std::uint32_t>::max();
  constexpr std::uint32_t shared = unused - 1;
  std::vector<std::uint32_t> user(trace.tensors.size(), unused);
  for (std::size_t i = 0; i < trace.operations.size(); ++i) {
    const auto its = static_cast<std::uint32_t>(engines.engine(id_at<OperationId>(i)));
    for_each_access(trace.operations[i], [&](TensorId tensor, Access) {
      std::uint32_t& known = user[index(tensor)];
      known = known == unused || known == its ? its : shared;
    });
  }
  // A tensor with accesses to parts of it is left out, too: less of it may be needed than the whole.
  for (const AccessRange& range : trace.ranges) user[index(range.tensor)] = shared;
  // So is an input that the host gives when an operation of another engine ends: that may be long before the operation
  // that stands before the gift in this part.
  for (std::size_t t = 0; t < trace.tensors.size(); ++t) {
    if (trace.tensors[t].kind != TensorKind::input) continue;
    const auto giver = id_at<OperationId>(giving_operation(trace.tensors[t], trace.operations.size()));
    if (engines.engine(giver) != engine) user[t] = shared;
  }
  const auto mine = [&](TensorId tensor) { return user[index(tensor)] == static_cast<std::uint32_t>(engine); };

  std::vector<bool> kept(trace.tensors.size(), false);
  for (std::size_t t = 0; t < kept.size(); ++t) kept[t] = mine(id_at<TensorId>(t));
  const KeptTensors tensors(trace, std::move(kept));
  Trace part;
  part.name = trace.name;
  part.tensors = tensors.tensors();
  std::vector<std::uint32_t> position(trace.operations.size() + 1, 0);  // operations of the part before this one
  for (std::size_t i = 0; i < trace.operations.size(); ++i) {
    position[i + 1] = position[i];
    if (engines.engine(id_at<OperationId>(i)) != engine) continue;
    ++position[i + 1];
    part.operations.push_back(tensors.of(trace.operations[i]));
  }
  for (TraceTensor& tensor : part.tensors) tensor.available_from = position[tensor.available_from];
  for (const HostRead& read : trace.host_reads) {
    const std::uint32_t before = position[index(read.after_operation) + 1];
    if (!mine(read.tensor) || before == 0) continue;
    part.host_reads.push_back({tensors.id(read.tensor), OperationId{before - 1}});
  }
  return part;
}

}  // namespace swapmm::v2::planning
