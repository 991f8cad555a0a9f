// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include <swapmm/plan/schedule/schedule.hpp>

namespace swapmm::planning {

/// Which resident tensor goes out first if room is needed.
enum class Victim : std::uint8_t {
  least_recently_used,
  used_furthest_ahead,  ///< Belady's choice; among tensors used at the same operation, clean before dirty
};

/// The stays that result if every bundle is brought in right before its operation, and tensors go out only if room is
/// needed. Dead values are released at once. The iteration is repeated until it ends with the residents that it began
/// with.
[[nodiscard]] std::vector<Stay> on_demand_stays(const PlanningCase& planning, Victim victim, std::uint64_t bytes);

}  // namespace swapmm::planning
