// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include <swapmm/plan/planner_options.hpp>
#include <swapmm/plan/schedule/schedule.hpp>

namespace swapmm::planning {

/// The planner `excess` of docs/planning.md: the published heuristic, and nothing else. The plan has no digest and no
/// prediction.
[[nodiscard]] Result<Plan> build_excess_plan(const PlanningCase& planning, const ExcessOptions& options,
                                             std::string_view planner);

}  // namespace swapmm::planning
