// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include <swapmm/plan/problem/planning_case.hpp>
#include <swapmm/plan/schedule/schedule.hpp>

namespace swapmm::planning {

/// Which operations have their inputs sent to the host.
enum class VdnnOffload : std::uint8_t {
  all,          ///< all operations: vDNN_all
  convolutions  ///< operations with "conv" in their name, in upper or lower case: vDNN_conv
};

/// The static policies of vDNN (Rhu, Gimelshein, Clemons, Zulfiqar, Keckler: vDNN, MICRO 2016), as baselines:
/// - The forward half consists of the operations up to the one with the most live bytes (the first of several); the
///   rest is the backward half. The paper knows the halves from the network's layers, which a trace does not have.
/// - A feature map is a transient or an input that an operation of the forward half reads or updates and an operation
///   of the backward half needs again. It goes out after its last use in the forward half, even if no room is needed.
///   Its copy is queued right after its write. The paper starts it with the last use, so here it is never later.
/// - Each operation of the backward half starts the prefetch for at most one operation: the nearest one ahead that
///   lacks something. The search ends at the first convolution, so that nothing comes much too early.
/// - All other tensors stay. In the paper the next layer waits for the copies of this one; here, only operations that
///   need their bytes wait.
/// If the result needs more room than there is, let_go_until_it_fits() sends out the tensors used furthest ahead. If it
/// does not pack, the choice is repeated for a smaller budget (build_fitting_plan()), so every trace whose bundles fit
/// has a plan. The plan has no digest and no prediction. Takes as long as let_go_until_it_fits() and a packing.
[[nodiscard]] Result<Plan> build_vdnn_plan(const PlanningCase& planning, VdnnOffload offload, std::string_view planner);

}  // namespace swapmm::planning
