// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include <swapmm/plan/planner_options.hpp>
#include <swapmm/plan/schedule/schedule.hpp>

namespace swapmm::planning {

/// Which resident tensor leaves first if there is not enough room.
enum class Victim : std::uint8_t {
  least_recently_used,
  used_furthest_ahead,  ///< Belady's choice; of those used next at the same operation, clean before dirty
};

/// Returns the stays that result if every bundle is brought in when its operation comes, and tensors leave only when
/// their room is needed. Dead tensors leave at once. The iteration is run until its residents at the end are those at
/// the start, at most `settling_runs` times; then the two are made equal.
[[nodiscard]] std::vector<Stay> on_demand_stays(const PlanningCase& planning, Victim victim, std::uint64_t bytes,
                                                int settling_runs = OnDemandOptions{}.settling_runs);

/// Makes the plan of these stays, for less of the budget if they do not pack. It has no digest and no prediction.
[[nodiscard]] Result<Plan> build_on_demand_plan(const PlanningCase& planning, std::string_view planner, Pace pace,
                                                Victim victim, const OnDemandOptions& options = {});

}  // namespace swapmm::planning
