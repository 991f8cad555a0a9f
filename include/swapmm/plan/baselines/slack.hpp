// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include <swapmm/plan/planner_options.hpp>
#include <swapmm/plan/problem/planning_case.hpp>
#include <swapmm/plan/schedule/schedule.hpp>

namespace swapmm::planning {

/// Tensor timing slack, a baseline: what is not used for long enough goes to the host meanwhile. A value goes out
/// between two uses if
/// - somewhere between them more is live than fits: elsewhere it costs nothing to stay;
/// - the operations between them take longer than its copies: in, and out where the host lacks the value. With less,
///   the second use waits however the copies are placed;
/// - it is larger than a part of the budget (SlackOptions::least_part): smaller ones add copies and hardly any room.
/// It is copied out from the use before the gap on, and comes back at the latest operation from which its copy is
/// hidden under those in front of its use. Both are reckoned for each tensor by itself: that tensors share the links is
/// what this policy does not see. Where that needs more room than there is, let_go_until_it_fits() sends away what is
/// used furthest ahead, and what does not pack is chosen again for a smaller budget (build_fitting_plan()), so that
/// every trace whose bundles fit has a plan. Without digest and prediction.
[[nodiscard]] Result<Plan> build_slack_plan(const PlanningCase& planning, const SlackOptions& options,
                                            std::string_view planner);

}  // namespace swapmm::planning
