// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include <swapmm/plan/problem/planning_case.hpp>
#include <swapmm/plan/schedule/best_plan.hpp>

namespace swapmm::planning {

/// Lets copies run before others on their link while that makes the plan faster: those that must wait for room may
/// stand in front of one that could start. Each try takes a validation and a
/// simulation, so large plans have few tries. Ends when
/// `is_enough` returns true.
void reorder_copies(const PlanningCase& planning, BestPlan& best, const std::function<bool()>& is_enough);

}  // namespace swapmm::planning
