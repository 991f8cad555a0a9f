// SPDX-License-Identifier: Apache-2.0
#pragma once

// The programs into which faults are put. Each does what its name says, on a device with very little memory.

#include <cstdint>
#include <span>
#include <string_view>

#include <swapmm/backend/testing/simulated.hpp>

#include "faults/world/world.hpp"

namespace swapmm::test {

struct Scenario {
  std::string_view name;
  void (*run)(World& world);
  /// What the device is like, beyond the order of its steps.
  void (*device)(simulated::Options& options) = [](simulated::Options&) {};
  /// Without a fault: what shows that the program did what it is for.
  bool (*achieved)(World& world) = [](World&) { return true; };
  bool streams = false;           ///< reads or writes files
  bool only_allocations = false;  ///< its calls of the backend are those of another scenario
  std::size_t managers = 1;       ///< that one fault may concern, and each tells of it
  std::uint64_t first = 8;        ///< of its calls, so many fail whatever the stride is
  std::uint64_t stride = 1;       ///< above 1: it takes long, and of its calls one in so many fails
};

/// All, or with SWAPMM_FAULT_SCENARIO those whose names contain it.
[[nodiscard]] std::span<const Scenario> scenarios();

}  // namespace swapmm::test
