// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include <swapmm/plan/planner_options.hpp>
#include <swapmm/plan/problem/planning_case.hpp>
#include <swapmm/plan/schedule/schedule.hpp>

namespace swapmm::planning {

/// The static policies of vDNN (Rhu, Gimelshein, Clemons, Zulfiqar, Keckler: vDNN, MICRO 2016), a baseline:
/// - The forward half are the operations up to the one with the most live bytes (the first of several); what comes
///   after it is the backward half. The paper knows the halves from the network's layers; a trace has none.
/// - A feature map is a transient or an input that an operation of the forward half reads or updates and one of the
///   backward half needs again. It goes out after its last use in the forward half, whether room lacks or not. Its
///   copy stands in the queue from its write on; the paper starts it with that last use, so here it is never later.
/// - Each operation of the backward half starts the prefetch of one operation at most: the nearest one ahead that lacks
///   something. The search ends at the first convolution, so that nothing comes much too early.
/// - All else stays. The paper lets the next layer wait for the copies of this one; here, only what needs their bytes
///   waits.
/// Where that needs more room than there is, let_go_until_it_fits() sends away what is used furthest ahead, and what
/// does not pack is chosen again for a smaller budget (build_fitting_plan()), so that every trace whose bundles fit
/// has a plan. Without digest and prediction. As long as let_go_until_it_fits() and a packing take.
[[nodiscard]] Result<Plan> build_vdnn_plan(const PlanningCase& planning, const VdnnOptions& options,
                                           std::string_view planner);

}  // namespace swapmm::planning
