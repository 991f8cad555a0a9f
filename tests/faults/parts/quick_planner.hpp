// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <swapmm/plan/planner_choice.hpp>

namespace swapmm::test {

/// A planner that makes the plans of `belady`, but works out no lower bound, which takes most of the time of planning.
/// For runs by the ten thousand.
[[nodiscard]] PlannerChoice quick_planner();

}  // namespace swapmm::test
