// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include <swapmm/plan/v2/machine.hpp>
#include <swapmm/plan/v2/simulation/elements.hpp>
#include <swapmm/plan/v2/simulation/waits.hpp>

namespace swapmm::v2::simulation {

/// For each element, whether it can have an effect on when `target` runs: itself, what it waits for, directly or not,
/// copies that share a capacity with such elements, and what these wait for.
[[nodiscard]] std::vector<bool> deciding_elements(const Machine& machine, const std::vector<Element>& elements,
                                                  const Waits& waits, std::uint32_t target);

}  // namespace swapmm::v2::simulation
