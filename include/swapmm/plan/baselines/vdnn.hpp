// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include <swapmm/plan/planner_options.hpp>
#include <swapmm/plan/problem/planning_case.hpp>
#include <swapmm/plan/schedule/schedule.hpp>

namespace swapmm::planning {

/// The static policies of vDNN (Rhu, Gimelshein, Clemons, Zulfiqar, Keckler: vDNN, MICRO 2016), a baseline:
/// - The forward half consists of the operations up to the one with the most live bytes (the first, if there are
///   several); the rest is the backward half. The paper knows the halves from the network's layers; a trace has none.
/// - A feature map is a transient or an input that an operation of the forward half reads or updates and one of the
///   backward half needs again. It goes out after its last use in the forward half, even if there is room for it. Its
///   copy is in the queue right after its write; in the paper, it starts with that last use, so here it is never later.
/// - Each operation of the backward half starts the prefetch of at most one operation: the nearest one ahead that lacks
///   a tensor. The search ends at the first convolution, so that nothing comes much too early.
/// - All other tensors stay. In the paper, the next layer waits for the copies of this one; here, only operations that
///   need their bytes wait.
///
/// If this needs more room than there is, let_go_until_it_fits() also sends out the tensors that are used furthest
/// ahead. If the result does not pack, it is chosen again for a smaller budget (build_fitting_plan()). So every trace
/// whose bundles fit has a plan. The plan has no digest and no prediction. Takes as long as let_go_until_it_fits() and
/// a packing.
[[nodiscard]] Result<Plan> build_vdnn_plan(const PlanningCase& planning, const VdnnOptions& options,
                                           std::string_view planner);

}  // namespace swapmm::planning
