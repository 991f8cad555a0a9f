// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include <swapmm/plan/planner.hpp>

namespace swapmm::planning {

/// The planners that `best` also runs: those before it in planners(). The bound of their plans is the time of the
/// computation.
[[nodiscard]] std::span<const NamedPlanner> planners_before_best();

}  // namespace swapmm::planning
