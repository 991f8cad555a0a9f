// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <swapmm/base/result.hpp>
#include <swapmm/plan/v2/machine.hpp>

namespace swapmm::v2::planning {

/// A memory that keeps what leaves a device, and the links between both.
struct Store {
  MemoryId memory{};
  LinkId in{};   ///< to the device
  LinkId out{};  ///< from the device
};

/// A tensor that leaves its device, or comes from the host.
struct StoredTensor {
  std::size_t part = 0;  ///< its EnginePart
  TensorId tensor{};     ///< of the whole trace
  Bytes bytes;
  Bytes traffic;             ///< bytes that are copied in an iteration, both ways
  std::uint32_t start = 0;   ///< the step of the serial plan in which it takes its place
  std::uint32_t length = 1;  ///< steps; all of them if it keeps the place
  bool in_host = false;      ///< the host gives or reads it
};

/// Where a tensor is stored.
struct StoredPlace {
  std::size_t store = 0;  ///< of its device's stores
  Bytes offset;           ///< 0 in memories without limit
};

/// For each device (by the part), the memories with direct links to and from it that run no operation, fastest first.
[[nodiscard]] std::vector<std::vector<Store>> find_stores(const Machine& machine, const std::vector<MemoryId>& devices);

/// A store for each tensor, such that the links of a device are busy for about as long, and places in limited stores.
/// Of two tensors, the one with more traffic for its bytes and steps comes to the faster store. `steps` is the number
/// of steps of an iteration. A Problem if stores are full.
[[nodiscard]] Result<std::vector<StoredPlace>> assign_stores(const Machine& machine,
                                                             const std::vector<std::vector<Store>>& stores,
                                                             const std::vector<StoredTensor>& tensors,
                                                             std::uint32_t steps);

}  // namespace swapmm::v2::planning
