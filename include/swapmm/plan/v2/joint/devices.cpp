// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/v2/joint/devices.hpp>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include <swapmm/plan/simulate.hpp>
#include <swapmm/plan/v2/joint/joint_search.hpp>

namespace swapmm::v2::planning {
namespace {

std::string name_of(std::size_t device) { return "device" + std::to_string(device); }

}  // namespace

Devices::Devices(std::span<const DeviceProgram> programs, const LinkCapacities& capacities) {
  trace_.name = std::to_string(programs.size()) + " devices";
  machine_.name = trace_.name;
  parts_.resize(programs.size());
  for (std::size_t d = 0; d < programs.size(); ++d) {
    EnginePart& part = parts_[d];
    part.engine = id_at<EngineId>(d);
    part.memory = id_at<MemoryId>(d);
    part.trace = programs[d].trace;
    trace_.engines.push_back(name_of(d));
    for (const TraceTensor& tensor : programs[d].trace.tensors) {
      part.tensors.push_back(id_at<TensorId>(trace_.tensors.size()));
      trace_.tensors.push_back(tensor);
    }
  }
  add_operations(programs);
  add_host_reads(programs);
  add_devices(programs, capacities);
}

SpreadCase Devices::parts() const { return make_spread_case(trace_, machine_, parts_); }

void Devices::add_operations(std::span<const DeviceProgram> programs) {
  // The part of its program that is before an operation, the device, its position there.
  std::vector<std::tuple<double, std::size_t, std::size_t>> order;
  for (std::size_t d = 0; d < programs.size(); ++d) {
    const std::size_t count = programs[d].trace.operations.size();
    for (std::size_t i = 0; i < count; ++i) {
      order.emplace_back(static_cast<double>(i) / static_cast<double>(count), d, i);
    }
  }
  std::ranges::sort(order);
  for (const auto& [before, d, position] : order) {
    EnginePart& part = parts_[d];
    TraceOperation operation = part.trace.operations[position];
    operation.engine = static_cast<std::uint32_t>(d);
    for (auto* const list : {&operation.reads, &operation.writes, &operation.updates}) {
      for (TensorId& tensor : *list) tensor = part.tensors[index(tensor)];
    }
    part.operations.push_back(id_at<OperationId>(trace_.operations.size()));
    trace_.operations.push_back(std::move(operation));
  }
  for (std::size_t d = 0; d < programs.size(); ++d) {
    const EnginePart& part = parts_[d];
    for (std::size_t t = 0; t < part.tensors.size(); ++t) {
      std::uint32_t& from = trace_.tensors[index(part.tensors[t])].available_from;
      if (from != 0) from = static_cast<std::uint32_t>(part.operations[from]);
    }
  }
}

void Devices::add_host_reads(std::span<const DeviceProgram> programs) {
  for (std::size_t d = 0; d < programs.size(); ++d) {
    for (const HostRead& read : programs[d].trace.host_reads) {
      trace_.host_reads.push_back(
          {parts_[d].tensors[index(read.tensor)], parts_[d].operations[index(read.after_operation)]});
    }
  }
}

void Devices::add_devices(std::span<const DeviceProgram> programs, const LinkCapacities& capacities) {
  std::vector<CapacityId> in;
  std::vector<CapacityId> out;
  const auto share = [&](const char* name, std::uint64_t rate, std::initializer_list<std::vector<CapacityId>*> ways) {
    if (rate == 0) return;
    for (std::vector<CapacityId>* const way : ways) way->push_back(id_at<CapacityId>(machine_.capacities.size()));
    machine_.capacities.push_back({name, std::max<std::uint64_t>(rate, 2 * programs.size())});
  };
  share("to-devices", capacities.to_devices, {&in});
  share("from-devices", capacities.from_devices, {&out});
  share("both-ways", capacities.both_ways, {&in, &out});
  const auto host = id_at<MemoryId>(programs.size());
  for (std::size_t d = 0; d < programs.size(); ++d) {
    const swapmm::Machine& alone = programs[d].machine;
    machine_.memories.push_back({name_of(d), alone.device_budget, alone.alignment, alone.max_allocation});
    machine_.engines.push_back({name_of(d), parts_[d].memory});
  }
  machine_.memories.push_back({"host", std::nullopt, Bytes{1}, std::nullopt});
  machine_.host = host;
  for (std::size_t d = 0; d < programs.size(); ++d) {
    const swapmm::Machine& alone = programs[d].machine;
    std::optional<EngineId> both;
    if (alone.duplex == Duplex::half) {
      both = id_at<EngineId>(machine_.engines.size());
      machine_.engines.push_back({name_of(d) + "-copies", std::nullopt});
    }
    const auto add = [&](const std::string& name, MemoryId from, MemoryId to, const swapmm::Link& link,
                         const std::vector<CapacityId>& shared) {
      machine_.links.push_back({name, from, to, link.bytes_per_second, link.latency, both, shared});
    };
    add("to-" + name_of(d), host, parts_[d].memory, alone.h2d, in);
    add("from-" + name_of(d), parts_[d].memory, host, alone.d2h, out);
  }
}

Result<DevicesPlan> plan_devices(std::span<const DeviceProgram> programs, const LinkCapacities& capacities,
                                 const PlanningOptions& options, bool with_turns) {
  if (programs.size() < 2) return Problem{"there is no other device"};
  const Devices devices(programs, capacities);
  const SpreadCase all = devices.parts();
  const Turns::Who most = with_turns ? Turns::Who::later : Turns::Who::nobody;
  std::vector<const swapmm::Plan*> known;
  for (const DeviceProgram& program : programs) known.push_back(program.known ? &*program.known : nullptr);
  const LazyBound of_computation = [](std::chrono::nanoseconds) { return std::chrono::nanoseconds{0}; };
  Result<JointPlan> found = search_parts(all, options, of_computation, most, known);
  if (!found) return found.problem();
  DevicesPlan result;
  result.iteration = found->plan.predicted.iteration;
  for (std::size_t d = 0; d < programs.size(); ++d) {
    DevicesPlan::Part& part = result.parts.emplace_back();
    part.plan = std::move(found->parts[d]);
    part.plan.trace_digest = digest(programs[d].trace);
    part.plan.planner = "best";
    part.plan.machine = programs[d].machine;
    const swapmm::Simulation alone = swapmm::simulate(programs[d].trace, part.plan);
    part.plan.predicted = {result.iteration, alone.compute, alone.compute, alone.h2d, alone.d2h, alone.peak};
  }
  for (std::size_t c = 0; c < found->origins.size(); ++c) {
    const CommandOrigin& own = found->origins[c];
    const Command& command = found->plan.commands[c];
    if (command.kind != CommandKind::copy) continue;
    for (const Wait& wait : command.after) {
      if (wait.on != Wait::On::command || wait.previous) continue;
      const CommandOrigin& other = found->origins[static_cast<std::size_t>(wait.index)];
      if (other.part == own.part) continue;
      result.parts[own.part].turns.push_back({own.command, static_cast<std::uint32_t>(other.part), other.command});
    }
  }
  for (DevicesPlan::Part& part : result.parts) {
    std::ranges::sort(part.turns, {},
                      [](const TurnWait& wait) { return std::tuple(wait.command, wait.device, wait.other); });
  }
  return result;
}

}  // namespace swapmm::v2::planning
