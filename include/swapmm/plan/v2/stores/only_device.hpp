// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include <swapmm/base/result.hpp>
#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/v2/plan.hpp>
#include <swapmm/plan/v2/spread/engine_part.hpp>
#include <swapmm/plan/v2/stores/routes.hpp>
#include <swapmm/plan/v2/stores/stored_plan.hpp>

namespace swapmm::v2::planning {

/// The only engine that computes, and what its device can store in.
struct OnlyDevice {
  /// Its trace has the same operations as the whole one, but its own tensors, and updates for writes of ranges.
  EnginePart part;
  std::vector<bool> in_host;  ///< of each tensor of the part: the host gives or reads it
  StoreRoutes routes;
  std::size_t host_store = 0;  ///< position of the host in its stores, if any tensor needs it

  /// Refers to this and to the machine.
  [[nodiscard]] DeviceCase device(const Machine& machine) const {
    return {part.trace, machine, part.memory, routes, in_host, host_store};
  }
};

/// A Problem if more engines compute, if no memory can be reached from the device and back, or if there is no way to
/// the host, which must give or read tensors.
[[nodiscard]] Result<OnlyDevice> find_only_device(const Trace& trace, const Machine& machine);

/// A plan for the part's tensors as one for those of the whole trace, with its times. A Problem if it is not valid.
[[nodiscard]] Result<Plan> for_whole_trace(const OnlyDevice& only, const Trace& trace, Plan plan);

}  // namespace swapmm::v2::planning
