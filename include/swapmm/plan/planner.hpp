// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <string>

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

/// A planner is a pure function: same trace and machine, same plan (but for what PlanningOptions::go_on answers). Its
/// plan is for that trace (`trace_digest` is the trace's digest()) and that machine; the caller checks it with
/// validate(). A Problem says why there is no plan. The library's planners fill in `predicted` by simulate(); their
/// only Problem is a bundle that does not fit, named with operation, need and budget.
using Planner = std::function<Result<Plan>(const Trace& trace, const Machine& machine, const PlanningOptions& options)>;

/// A planner with a name, as planners() lists them.
struct NamedPlanner {
  std::string name;     ///< as make_plan() and SchedulerOptions::planner take it
  Planner make;         ///< the function
  std::string summary;  ///< one line for a person
};

}  // namespace swapmm
