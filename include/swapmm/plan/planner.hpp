// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <string_view>

#include <swapmm/base/result.hpp>
#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/machine.hpp>
#include <swapmm/plan/plan.hpp>

namespace swapmm {

/// How far a planner that searches has come.
struct PlanningProgress {
  std::chrono::nanoseconds iteration{0};    ///< of the best plan so far; 0: none yet
  std::chrono::nanoseconds lower_bound{0};  ///< no plan is faster, as far as is proven
};

/// How long a planner may search.
struct PlanningOptions {
  /// Asked again and again by planners that search (`excess-overlap`, `best`, `ilp`), each time after some milliseconds
  /// of work: false ends the search with the best plan so far. A clock, a display of the progress or a button stands
  /// behind it; the planner itself looks at no clock. Empty: a set number of steps, some seconds for a
  /// thousand operations or more, so that the same input gives the same plan.
  std::function<bool(const PlanningProgress&)> go_on{};
};

/// A planner is a pure function: same trace and machine, same plan (but for what PlanningOptions::go_on answers). The
/// plan is complete: validated or refused by the caller with validate(), `predicted` filled in by simulate(). A
/// Problem says what cannot fit: operation, bundle, budget.
using Planner = Result<Plan> (*)(const Trace& trace, const Machine& machine, const PlanningOptions& options);

/// A planner, as planners() lists it.
struct NamedPlanner {
  std::string_view name;     ///< as make_plan() and SchedulerOptions::planner take it
  Planner make;              ///< the function
  std::string_view summary;  ///< one line for a person
};

}  // namespace swapmm
