// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "faults/loop/scenarios.hpp"

namespace swapmm::test {

/// Programs whose values are in files, in neighbours, in encoded forms, or on two devices.
[[nodiscard]] std::span<const Scenario> memory_scenarios();

}  // namespace swapmm::test
