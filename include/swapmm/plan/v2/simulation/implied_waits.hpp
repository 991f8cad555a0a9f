// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/v2/machine.hpp>
#include <swapmm/plan/v2/simulation/elements.hpp>
#include <swapmm/plan/v2/simulation/parts.hpp>
#include <swapmm/plan/v2/simulation/waits.hpp>

namespace swapmm::v2::simulation {

/// Adds the waits between conflicting operations of different engines with the same memory. Leaves out those that
/// follow from others and from the order on engines. Takes a logarithmic factor more than the number of accesses to
/// parts, and nothing if no two engines with operations share a memory.
void add_implied_waits(std::vector<Edge>& edges, const Trace& trace, const Machine& machine,
                       const std::vector<Element>& elements, const Parts& parts);

}  // namespace swapmm::v2::simulation
