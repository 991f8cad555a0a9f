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

namespace swapmm {

/// All planners, simplest first: per-operation, on-demand, belady, vdnn-all, vdnn-conv, slack, excess-overlap, best;
/// and `ilp`, once provide_ilp() (plan/ilp.hpp) has been called.
[[nodiscard]] SWAPMM_EXPORT std::span<const NamedPlanner> planners();

/// Runs the planner of that name; an unknown name is a Problem that lists the known ones.
[[nodiscard]] SWAPMM_EXPORT Result<Plan> make_plan(std::string_view planner, const Trace& trace, const Machine& machine,
                                                   const PlanningOptions& options = {});

/// What provide_ilp() of the component `ilp` calls: planners() and make_plan() know that planner as `ilp` from now on,
/// in the whole process. Without it, make_plan("ilp") is a Problem that says what to link.
SWAPMM_EXPORT void provide_planner_ilp(Planner make);

}  // namespace swapmm
