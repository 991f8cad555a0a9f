// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include <swapmm/base/result.hpp>
#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/planner.hpp>
#include <swapmm/plan/v2/plan.hpp>

namespace swapmm::v2::planning {

/// Plans for engines that share memories or tensors: for each memory alone (SharedParts), with a planner of version 1,
/// and spreads what leaves as spread() does. When operations begin is an estimate at first, then taken from the best
/// plan so far, as long as that gains. Several speeds of the host, and parts of tensors that stay or do not until they
/// have left, are tried in a short search; the best choice gets one as long as `options` allow. Fills in all but
/// `planner` and the bound.
///
/// A Problem as of shared_parts(), if stores are full, or if `planner` finds no plan.
[[nodiscard]] Result<Plan> spread_shared(std::string_view planner, const Trace& trace, const Machine& machine,
                                         const PlanningOptions& options);

}  // namespace swapmm::v2::planning
