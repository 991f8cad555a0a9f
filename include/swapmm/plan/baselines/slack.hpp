// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include <swapmm/plan/problem/planning_case.hpp>
#include <swapmm/plan/schedule/schedule.hpp>

namespace swapmm::planning {

/// The baseline `slack` (tensor timing slack): values that are unused for long enough go to the host for that time. A
/// value goes out between two uses if
/// - somewhere between them more is live than fits; elsewhere staying costs nothing;
/// - the operations between them take longer than its copies (in, and out if the host does not have the value);
///   otherwise the second use waits in any case;
/// - it is larger than 1/1024 of the budget; smaller values add copies and hardly any room.
/// It is copied out from the use before the gap on. It comes back at the latest operation from which its copy is hidden
/// by the operations before its use. Both are computed for each tensor separately: this policy does not consider that
/// tensors share the links. If the result needs more room than there is, let_go_until_it_fits() sends out the tensors
/// used furthest ahead. If it does not pack, the choice is repeated for a smaller budget (build_fitting_plan()), so
/// every trace whose bundles fit has a plan. The plan has no digest and no prediction.
[[nodiscard]] Result<Plan> build_slack_plan(const PlanningCase& planning, std::string_view planner);

}  // namespace swapmm::planning
