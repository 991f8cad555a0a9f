// SPDX-License-Identifier: Apache-2.0
#include "device_instances.hpp"

#include <algorithm>
#include <cmath>
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

constexpr double link_bytes_per_second = 15.754e9;
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

std::vector<v2::planning::DeviceProgram> programs_of(const DeviceInstance& instance) {
  std::vector<v2::planning::DeviceProgram> programs;
  for (std::uint32_t d = 0; d < instance.devices; ++d) {
    Trace trace = program_of(instance, d);
    const Bytes budget = std::max(part_of(peak_of(trace), 1 / instance.oversubscribed),
                                  analyze_liveness(trace, alignment).largest_bundle);
    programs.push_back({std::move(trace), machine_with(budget, link_bytes_per_second)});
  }
  return programs;
}

LinkCapacities capacities_of(const DeviceInstance& instance) {
  const auto capacity = static_cast<std::uint64_t>(instance.capacity * link_bytes_per_second);
  if (instance.root == Root::one_for_both) return {.both_ways = capacity};
  return {.to_devices = capacity, .from_devices = capacity};
}

}  // namespace swapmm::bench
