// SPDX-License-Identifier: Apache-2.0
#include "device_instances.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include <swapmm/ir/liveness.hpp>

#include "measuring.hpp"
#include "table.hpp"
#include "training_trace.hpp"

namespace swapmm::bench {
namespace {

const std::vector<DeviceInstance> instances = {
    {Programs::vit, 0, 0, 2, 1.5, 1.5, Root::one_for_both, 0.2},
    {Programs::vit, 0, 0, 2, 3, 1, Root::one_for_both, 1},
    {Programs::vit, 0, 0, 2, 6, 2, Root::one_for_both, 0.2},
    {Programs::vit, 0, 0, 2, 6, 2, Root::one_for_both, 1},
    {Programs::vit, 0, 0, 4, 1.5, 2, Root::one_each_way, 1},
    {Programs::vit, 0, 0, 4, 2, 1.5, Root::one_each_way, 0.2},
    {Programs::vit, 0, 0, 8, 3, 1.5, Root::one_each_way, 0.2},
    {Programs::vit, 0, 0, 8, 3, 1, Root::one_each_way, 0.5},
    {Programs::bert, 0, 0, 2, 2, 1.5, Root::one_each_way, 1},
    {Programs::bert, 0, 0, 2, 2, 1.5, Root::one_each_way, 0.5},
    {Programs::bert, 0, 0, 4, 2, 1, Root::one_for_both, 1},
    {Programs::bert, 0, 0, 4, 3, 1, Root::one_each_way, 0.2},
    {Programs::bert, 0, 0, 4, 3, 2, Root::one_each_way, 0.5},
    {Programs::bert, 0, 0, 4, 6, 1, Root::one_for_both, 1},
    {Programs::bert, 0, 0, 4, 6, 1.5, Root::one_each_way, 0.2},
    {Programs::step, 20, 4, 2, 2, 1, Root::one_for_both, 1},
    {Programs::step, 20, 14, 4, 4, 1, Root::one_each_way, 1},
    {Programs::step, 40, 25, 8, 3, 1, Root::one_for_both, 1},
    {Programs::step, 40, 6, 8, 4, 1, Root::one_each_way, 1},
    {Programs::step, 40, 35, 8, 4, 1, Root::one_each_way, 1},
    {Programs::step, 40, 20, 8, 6, 1.5, Root::one_each_way, 1},
    {Programs::step, 20, 28, 8, 6, 1, Root::one_for_both, 1},
    {Programs::two_recorded, 0, 0, 2, 4, 2, Root::one_each_way, 0.2},
    {Programs::two_recorded, 0, 0, 2, 4, 1, Root::one_each_way, 1},
    {Programs::two_recorded, 0, 0, 4, 2, 2, Root::one_each_way, 1},
    {Programs::two_recorded, 0, 0, 4, 6, 1, Root::one_for_both, 0.5},
    {Programs::two_recorded, 0, 0, 8, 1.5, 1.5, Root::one_each_way, 0.2},
    {Programs::two_recorded, 0, 0, 8, 1.5, 1, Root::one_each_way, 0.2},
    {Programs::two_recorded, 0, 0, 8, 4, 1.5, Root::one_each_way, 0.5},
    {Programs::steps, 40, 13, 2, 1.5, 2, Root::one_for_both, 1},
    {Programs::steps, 40, 33, 2, 1.5, 1, Root::one_for_both, 1},
    {Programs::steps, 80, 18, 2, 4, 2, Root::one_each_way, 1},
    {Programs::steps, 20, 1, 4, 1.5, 1, Root::one_each_way, 1},
    {Programs::steps, 20, 30, 4, 3, 2, Root::one_each_way, 1},
    {Programs::steps, 40, 22, 8, 1.5, 1, Root::one_each_way, 1},
    {Programs::steps, 20, 10, 8, 2, 1, Root::one_each_way, 1},
};

constexpr std::uint64_t link_bytes_per_second = 15'754'000'000;
constexpr Bytes alignment{256};

const char* to_string(Programs programs) {
  switch (programs) {
    case Programs::vit: return "ViT";
    case Programs::bert: return "BERT";
    case Programs::step: return "step";
    case Programs::two_recorded: return "ViT and BERT";
    case Programs::steps: return "other steps";
  }
  return "";
}

Trace program_of(const DeviceInstance& instance, std::uint32_t device) {
  const auto recorded = [&](bool vit) {
    return with_scaled_durations(
        load_trace(vit ? "tests/data/traces/g10/VIT_b512.json" : "tests/data/traces/g10/BERT_Base_b256.json"),
        instance.compute_scale);
  };
  switch (instance.programs) {
    case Programs::vit: return recorded(true);
    case Programs::bert: return recorded(false);
    case Programs::two_recorded: return recorded(device % 2 == 0);
    case Programs::step: return training_trace(std::size_t{3} * instance.layers, instance.seed);
    case Programs::steps:
      return training_trace(std::size_t{3} * (instance.layers + 5 * (device % 3)), 100 * instance.seed + device);
  }
  return {};
}

std::vector<Trace> programs_of(const DeviceInstance& instance) {
  std::vector<Trace> programs;
  for (std::uint32_t d = 0; d < instance.devices; ++d) programs.push_back(program_of(instance, d));
  return programs;
}

std::string device_name(std::uint32_t device) { return "gpu" + std::to_string(device); }

}  // namespace

const std::vector<DeviceInstance>& device_instances() { return instances; }

std::string name_of(const DeviceInstance& instance) {
  std::string name = to_string(instance.programs);
  if (instance.layers > 0) name += " " + std::to_string(instance.layers) + "/" + std::to_string(instance.seed);
  name += " x" + std::to_string(instance.devices) + " k" + fixed(instance.oversubscribed, 1) + " capacity " +
          fixed(instance.capacity, 1) + (instance.root == Root::one_for_both ? " both ways" : " each way");
  if (instance.compute_scale < 1) name += " compute " + fixed(instance.compute_scale, 1);
  return name;
}

Trace trace_of(const DeviceInstance& instance) {
  Trace all;
  all.name = name_of(instance);
  // Part of its program that an operation has before it, device, position.
  std::vector<std::tuple<double, std::uint32_t, std::uint32_t>> turns;
  const std::vector<Trace> programs = programs_of(instance);
  std::vector<std::uint32_t> first_tensor;
  for (std::uint32_t d = 0; d < programs.size(); ++d) {
    all.engines.push_back(device_name(d));
    first_tensor.push_back(static_cast<std::uint32_t>(all.tensors.size()));
    for (const TraceTensor& tensor : programs[d].tensors) all.tensors.push_back(tensor);
    const auto count = static_cast<double>(programs[d].operations.size());
    for (std::uint32_t i = 0; i < programs[d].operations.size(); ++i) turns.emplace_back(i / count, d, i);
  }
  std::ranges::sort(turns);
  for (const auto& [part, device, position] : turns) {
    TraceOperation operation = programs[device].operations[position];
    operation.engine = device;
    for (auto* list : {&operation.reads, &operation.writes, &operation.updates}) {
      for (TensorId& tensor : *list) tensor = id_at<TensorId>(first_tensor[device] + index(tensor));
    }
    all.operations.push_back(std::move(operation));
  }
  return all;
}

v2::Machine machine_of(const DeviceInstance& instance) {
  v2::Machine machine;
  machine.name = std::to_string(instance.devices) + " devices";
  const auto capacity = static_cast<std::uint64_t>(instance.capacity * link_bytes_per_second);
  if (instance.root == Root::one_for_both) {
    machine.capacities.push_back({"root", capacity});
  } else {
    machine.capacities.push_back({"in", capacity});
    machine.capacities.push_back({"out", capacity});
  }
  const v2::MemoryId host{instance.devices};
  const std::vector<Trace> programs = programs_of(instance);
  for (std::uint32_t d = 0; d < instance.devices; ++d) {
    const Bytes budget = std::max(part_of(peak_of(programs[d]), 1 / instance.oversubscribed),
                                  analyze_liveness(programs[d], alignment).largest_bundle);
    const std::string name = device_name(d);
    const v2::MemoryId memory{d};
    machine.memories.push_back({name, budget, alignment, std::nullopt});
    machine.engines.push_back({name, memory});
    const auto add_link = [&](const std::string& link, v2::MemoryId from, v2::MemoryId to, std::uint32_t shared) {
      machine.links.push_back(
          {link, from, to, link_bytes_per_second, std::chrono::nanoseconds{0}, std::nullopt, {v2::CapacityId{shared}}});
    };
    add_link("host-" + name, host, memory, 0);
    add_link(name + "-host", memory, host, instance.root == Root::one_for_both ? 0 : 1);
  }
  machine.memories.push_back({"host", std::nullopt, Bytes{1}, std::nullopt});
  machine.host = host;
  return machine;
}

}  // namespace swapmm::bench
