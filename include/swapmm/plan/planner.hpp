// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

#include <swapmm/base/result.hpp>
#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/machine.hpp>
#include <swapmm/plan/plan.hpp>

namespace swapmm {

/// A planner is a pure function: same trace and machine, same plan. The plan is complete: validated or refused by
/// the caller with validate(), `predicted` filled in by simulate(). A Problem says what cannot fit: operation,
/// bundle, budget.
using Planner = Result<Plan> (*)(const Trace& trace, const Machine& machine);

/// A planner, as planners() lists it.
struct NamedPlanner {
  std::string_view name;     ///< as make_plan() and SchedulerOptions::planner take it
  Planner make;              ///< the function
  std::string_view summary;  ///< one line for a person
};

/// All planners, simplest first: per-operation, on-demand, belady, excess-overlap.
[[nodiscard]] std::span<const NamedPlanner> planners();

/// Runs the planner of that name; an unknown name is a Problem that lists the known ones.
[[nodiscard]] Result<Plan> make_plan(std::string_view planner, const Trace& trace, const Machine& machine);

}  // namespace swapmm
