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
#include <swapmm/plan/v2/spread/stores.hpp>

namespace swapmm::v2::planning {

/// A device with stores, and what it runs: a trace of version 1 whose engine is the machine's only one that computes.
struct DeviceCase {
  const Trace& trace;
  const Machine& machine;
  MemoryId device{};
  const std::vector<Store>& stores;  ///< fastest first
  std::vector<bool> in_host;         ///< of each tensor: the host gives or reads it
  std::size_t host_store = 0;        ///< position of the host in `stores`, if any tensor needs it
};

/// The store that a value is to have: of a tensor, and the operation that wrote the value; none: no operation writes
/// the tensor. It need not have room.
using WantedStore = std::function<std::size_t(TensorId, std::optional<std::uint32_t> write)>;

/// The plan of version 1 for the device and one host, with each value in a store of its own choice. A value has a place
/// from its copy to its last return; if no operation writes it, always. Values that find no place go to another store:
/// the one that carries the most. All but `planner` and `predicted` is filled in. A Problem if all stores are full.
[[nodiscard]] Result<Plan> stored_plan(const DeviceCase& device, const swapmm::Plan& plan, const WantedStore& wanted,
                                       const PackingEffort& packing);

}  // namespace swapmm::v2::planning
