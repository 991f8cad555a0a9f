// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include <swapmm/plan/v2/schedule/waits.hpp>

namespace swapmm::v2::planning {

/// Values that come from a store, but that another memory still holds, come from there if its link is as fast. Copies
/// to the host that nobody needs then are left out. Returns which commands stay, ascending. The plan must be right as
/// it is, and stays so.
std::vector<std::uint32_t> hand_over_directly(const Trace& trace, const Machine& machine, SerialPlan& plan);

}  // namespace swapmm::v2::planning
