// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include <swapmm/plan/plan.hpp>

namespace swapmm::v2::planning {

/// The commands of a valid plan of version 1 in an order in which operations and commands can run one after another:
/// what brings tensors as early as the plan's waits allow.
struct SerialOrder {
  std::vector<std::uint32_t> commands;
  std::vector<std::uint32_t> before;  ///< of each of them: the operation before which it runs; n behind all
};

[[nodiscard]] SerialOrder serial_order(const swapmm::Plan& plan, std::size_t operations);

}  // namespace swapmm::v2::planning
