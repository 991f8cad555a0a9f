// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include <swapmm/plan/ilp/orders.hpp>
#include <swapmm/plan/plan.hpp>
#include <swapmm/plan/problem/overlap_ledger.hpp>

namespace swapmm::planning::ilp {

/// Makes the plan that moves everything when a solution of the program over times and orders does. stays_of() cannot:
/// its gaps lie between operations, and in the best plans one tensor leaves and another one comes within a gap. Packs
/// the times in which tensors are on the device, with that many steps (PackingEffort::ejection_steps). Nothing if they
/// do not pack, if the host reads something, or if the commands would not be a valid plan. With digest, without
/// prediction.
[[nodiscard]] std::optional<Plan> timed_plan(const OrdersModel& model, const std::vector<double>& values,
                                             const OverlapLedger& ledger, std::string_view planner,
                                             std::uint32_t packing_steps);

}  // namespace swapmm::planning::ilp
