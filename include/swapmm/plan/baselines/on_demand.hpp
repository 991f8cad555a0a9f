// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include <swapmm/plan/planner_options.hpp>
#include <swapmm/plan/schedule/schedule.hpp>

namespace swapmm::planning {

/// Which resident tensor goes first where room lacks.
enum class Victim : std::uint8_t {
  least_recently_used,
  used_furthest_ahead,  ///< Belady's choice; of those used at the same operation, clean before dirty
};

/// The stays that come about when every bundle is brought when its operation comes, and room is made only where it
/// lacks. What is dead goes at once. The iteration is run until the residency at its end is that at its start, at most
/// `settling_runs` times; then the two are made equal.
[[nodiscard]] std::vector<Stay> on_demand_stays(const PlanningCase& planning, Victim victim, std::uint64_t bytes,
                                                int settling_runs = OnDemandOptions{}.settling_runs);

/// The plan of these stays, for less of the budget where they do not pack. Without digest and prediction.
[[nodiscard]] Result<Plan> build_on_demand_plan(const PlanningCase& planning, std::string_view planner, Pace pace,
                                                Victim victim, const OnDemandOptions& options = {});

}  // namespace swapmm::planning
