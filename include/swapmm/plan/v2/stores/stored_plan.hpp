// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include <swapmm/base/result.hpp>
#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/packing.hpp>
#include <swapmm/plan/plan.hpp>
#include <swapmm/plan/v2/plan.hpp>
#include <swapmm/plan/v2/stores/routes.hpp>

namespace swapmm::v2::planning {

/// A device with stores, and what it runs: a trace of version 1 whose engine is the machine's only one that computes.
struct DeviceCase {
  const Trace& trace;
  const Machine& machine;
  MemoryId device{};
  const StoreRoutes& routes;
  std::vector<bool> in_host;   ///< of each tensor: the host gives or reads it
  std::size_t host_store = 0;  ///< position of the host in its stores, if any tensor needs it

  [[nodiscard]] const std::vector<RoutedStore>& stores() const { return routes.stores; }
};

/// The store that a value is to have: of a tensor, and the operation that wrote the value; none: no operation writes
/// the tensor. It need not have room.
using WantedStore = std::function<std::size_t(TensorId, std::optional<std::uint32_t> write)>;

/// The plan of version 1 for the device and one host, with each value in a store of its own choice. A value has a place
/// from its copy to its last return; if no operation writes it, always. Values that find no place go to another store:
/// the one that carries the most. Values of far stores pass the memories on the way, a few at a time. All but `planner`
/// and `predicted` is filled in. A Problem if all stores are full.
[[nodiscard]] Result<Plan> stored_plan(const DeviceCase& device, const swapmm::Plan& plan, const WantedStore& wanted,
                                       const PackingEffort& packing);

}  // namespace swapmm::v2::planning
