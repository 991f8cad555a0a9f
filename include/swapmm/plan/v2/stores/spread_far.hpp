// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include <swapmm/base/result.hpp>
#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/planner.hpp>
#include <swapmm/plan/v2/plan.hpp>

namespace swapmm::v2::planning {

/// The same as spread() for one engine whose device has stores behind others: it spreads what leaves as if each store
/// were linked to the device, and lets values pass the memories on the way. Fills in all but `planner` and the bound.
///
/// A Problem if there are no such stores, more engines compute, stores are full, or `planner` finds no plan.
[[nodiscard]] Result<Plan> spread_far(std::string_view planner, const Trace& trace, const Machine& machine,
                                      const PlanningOptions& options);

}  // namespace swapmm::v2::planning
