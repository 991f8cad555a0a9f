// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include <swapmm/plan/planner_options.hpp>
#include <swapmm/plan/problem/planning_case.hpp>
#include <swapmm/plan/schedule/schedule.hpp>

namespace swapmm::planning {

/// Tensor timing slack, a baseline: tensors that are not used for long enough go to the host in the meantime. A value
/// goes out between two uses if
/// - more is live than fits somewhere between them: elsewhere, staying costs nothing;
/// - the operations between them take longer than its copies: the swap-in, and the swap-out if the host does not have
///   the value. Otherwise the second use waits, however the copies are placed;
/// - it is larger than a part of the budget (SlackOptions::least_part): smaller ones add copies and hardly any room.
///
/// It leaves when its swap-out would have ended, if that began right after the first use. Its swap-in starts at the
/// latest operation from which the operations before the second use hide the copy. Both are computed for each tensor
/// alone: this policy does not take into account that tensors share the links. If this needs more room than there is,
/// let_go_until_it_fits() also sends out the tensors that are used furthest ahead. If the result does not pack, it is
/// chosen again for a smaller budget (build_fitting_plan()). So every trace whose bundles fit has a plan. The plan has
/// no digest and no prediction.
[[nodiscard]] Result<Plan> build_slack_plan(const PlanningCase& planning, const SlackOptions& options,
                                            std::string_view planner);

}  // namespace swapmm::planning
