// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include <swapmm/plan/schedule/schedule.hpp>

namespace swapmm::planning {

/// Which resident tensor goes first where room lacks.
enum class Victim : std::uint8_t {
  least_recently_used,
  used_furthest_ahead,  ///< Belady's choice; of those used at the same operation, clean before dirty
};

/// The stays that come about when every bundle is brought when its operation comes, and room is made only where it
/// lacks. What is dead goes at once. The iteration is run until the residency at its end is that at its start.
[[nodiscard]] std::vector<Stay> on_demand_stays(const PlanningCase& planning, Victim victim, std::uint64_t bytes);

}  // namespace swapmm::planning
