// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

#include <swapmm/base/export.hpp>
#include <swapmm/base/result.hpp>
#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/machine.hpp>
#include <swapmm/plan/plan.hpp>
#include <swapmm/plan/planner.hpp>
#include <swapmm/plan/planner_options.hpp>

namespace swapmm {

/// The planners of the core with their default parameters, simplest first: per-operation, on-demand, belady, vdnn-all,
/// vdnn-conv, slack, excess, excess-overlap, best. The component `ilp` has one more: ilp_planner() in plan/ilp.hpp.
[[nodiscard]] SWAPMM_EXPORT std::span<const NamedPlanner> planners();

/// Runs the planner of that name. If the name is unknown, returns a Problem that lists the known ones.
[[nodiscard]] SWAPMM_EXPORT Result<Plan> make_plan(std::string_view planner, const Trace& trace, const Machine& machine,
                                                   const PlanningOptions& options = {});

/// @{
/// Makes a planner of planners() with the given parameters. Call it, or pass it to SchedulerOptions::planner. Its plans
/// have its usual name in Plan::planner. docs/planning.md describes each planner.
[[nodiscard]] SWAPMM_EXPORT NamedPlanner per_operation_planner();
[[nodiscard]] SWAPMM_EXPORT NamedPlanner on_demand_planner(const OnDemandOptions& options = {});
[[nodiscard]] SWAPMM_EXPORT NamedPlanner belady_planner(const OnDemandOptions& options = {});
[[nodiscard]] SWAPMM_EXPORT NamedPlanner vdnn_planner(const VdnnOptions& options = {});
[[nodiscard]] SWAPMM_EXPORT NamedPlanner slack_planner(const SlackOptions& options = {});
[[nodiscard]] SWAPMM_EXPORT NamedPlanner excess_planner(const ExcessOptions& options = {});
[[nodiscard]] SWAPMM_EXPORT NamedPlanner excess_overlap_planner(const ExcessOverlapOptions& options = {});
[[nodiscard]] SWAPMM_EXPORT NamedPlanner best_planner(const BestOptions& options = {});
/// @}

}  // namespace swapmm
