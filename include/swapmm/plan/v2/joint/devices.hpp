// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <swapmm/base/result.hpp>
#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/machine.hpp>
#include <swapmm/plan/plan.hpp>
#include <swapmm/plan/planner.hpp>
#include <swapmm/plan/v2/machine.hpp>
#include <swapmm/plan/v2/spread/spread_plans.hpp>

namespace swapmm::v2::planning {

/// What one of several devices runs, and the machine for which it would be planned alone.
struct DeviceProgram {
  Trace trace;
  swapmm::Machine machine;
  /// A plan for the device alone that is known already: the search begins with it. One that is not valid for the trace
  /// and the budget is not used.
  std::optional<swapmm::Plan> known{};
};

/// Several devices as one machine that runs one program. Their operations take turns by their part of the iteration.
class Devices {
 public:
  /// Names, engines and memories are those of the devices: `device0` and so on. The host has no limit.
  Devices(std::span<const DeviceProgram> programs, const LinkCapacities& capacities);
  Devices(const Devices&) = delete;
  Devices& operator=(const Devices&) = delete;

  [[nodiscard]] const Trace& trace() const { return trace_; }
  [[nodiscard]] const Machine& machine() const { return machine_; }
  /// The devices' programs as they are; refers to this object.
  [[nodiscard]] SpreadCase parts() const;

 private:
  void add_operations(std::span<const DeviceProgram> programs);
  void add_host_reads(std::span<const DeviceProgram> programs);
  void add_devices(std::span<const DeviceProgram> programs, const LinkCapacities& capacities);

  Trace trace_;
  Machine machine_;
  std::vector<EnginePart> parts_;
};

/// A copy that waits for a copy of another device.
struct TurnWait {
  std::uint32_t command = 0;  ///< of the device's plan
  std::uint32_t device = 0;   ///< the other one
  std::uint32_t other = 0;    ///< the command of its plan, in the same iteration

  friend bool operator==(const TurnWait&, const TurnWait&) = default;
};

/// Plans for several devices whose iterations run side by side.
struct DevicesPlan {
  /// A plan for one of them.
  struct Part {
    swapmm::Plan plan;            ///< valid for the device alone; `predicted` is for it beside the others
    std::vector<TurnWait> turns;  ///< ascending by command; of copies of earlier devices only
  };
  std::vector<Part> parts;
  std::chrono::nanoseconds iteration{0};  ///< predicted, of all of them
};

/// Searches for them as search_jointly() does. `with_turns`: copies may wait for those of other devices. A Problem if
/// there are fewer than two devices, or a device has no plan.
[[nodiscard]] Result<DevicesPlan> plan_devices(std::span<const DeviceProgram> programs,
                                               const LinkCapacities& capacities, const PlanningOptions& options,
                                               bool with_turns);

}  // namespace swapmm::v2::planning
