// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <swapmm/plan/machine.hpp>
#include <swapmm/plan/v2/joint/devices.hpp>

namespace swapmm::bench {

/// What the devices run.
enum class Programs : std::uint8_t {
  vit,           ///< the recorded ViT on each
  bert,          ///< the recorded BERT on each
  step,          ///< the same training step on each
  two_recorded,  ///< ViT and BERT in turn
  steps,         ///< other training steps on each
};

/// What the links between devices and host share.
enum class Root : std::uint8_t {
  one_each_way,  ///< a capacity for all links to the devices, and one for all links back, as PCIe has
  one_for_both,  ///< one for all, as a host's memory has
};

/// Devices behind one link, each with a part of its program's peak.
struct DeviceInstance {
  Programs programs{};
  std::uint32_t layers = 0;  ///< of training steps
  std::uint64_t seed = 0;    ///< of training steps
  std::uint32_t devices = 0;
  double oversubscribed = 0;  ///< peak of each program / budget of its device
  double capacity = 0;        ///< shared, in links of one device
  Root root{};
  double compute_scale = 1;  ///< of the recorded durations
};

/// Drawn before the planner for them was written.
[[nodiscard]] const std::vector<DeviceInstance>& device_instances();
[[nodiscard]] std::string name_of(const DeviceInstance& instance);
/// What each device runs, and with links of 15.754 GB/s each way.
[[nodiscard]] std::vector<v2::planning::DeviceProgram> programs_of(const DeviceInstance& instance);
/// What the links share.
[[nodiscard]] LinkCapacities capacities_of(const DeviceInstance& instance);

}  // namespace swapmm::bench
