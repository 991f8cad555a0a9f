// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include <swapmm/plan/planner.hpp>
#include <swapmm/plan/planner_options.hpp>
#include <swapmm/plan/schedule/schedule.hpp>

namespace swapmm::planning {

/// The heuristic `excess-overlap` of docs/planning.md. Never worse than `per-operation`, by (iteration time, bytes
/// moved). The plan has no digest and no prediction. `go_on` is called before each packing.
[[nodiscard]] Result<Plan> build_excess_overlap_plan(const PlanningCase& planning, std::string_view planner,
                                                     const ExcessOverlapOptions& options,
                                                     const PlanningOptions& limits);

}  // namespace swapmm::planning
