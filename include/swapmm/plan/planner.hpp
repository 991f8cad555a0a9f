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

/// The progress of a planner that searches.
struct PlanningProgress {
  std::chrono::nanoseconds iteration{0};    ///< iteration time of the best plan so far; 0: none yet
  std::chrono::nanoseconds lower_bound{0};  ///< proven so far: no plan is faster
  /// The planner asks whether this part of the time has passed: it needs the rest for what must follow. Callers with a
  /// time limit look at it, so that planning ends within the limit; others may ignore it.
  double part = 1;
};

/// Ways besides copies in which values may leave and come back.
struct Ways {
  bool recompute = true;  ///< replayable operations may run again
  bool compress = true;   ///< values may be encoded in forms that the trace has for them
  bool pieces = true;     ///< tensors that only operations in pieces access may be divided
};

/// Limits the search of a planner.
struct PlanningOptions {
  /// Called repeatedly by planners that search (`excess-overlap`, `best`, `ilp`), after every few milliseconds of work.
  /// If it returns false, the search ends with the best plan so far. It may check a clock, show the progress, or react
  /// to a button; the planner itself reads no clock. If it is empty, the search takes a fixed number of steps (some
  /// seconds for a thousand operations or more), so that the same input gives the same plan.
  std::function<bool(const PlanningProgress&)> go_on{};
  /// With `go_on`, a search goes on for as long as that allows, and for longer than the fixed number of steps. If this
  /// is true it ends after these, too, so that the same input gives the same plan unless `go_on` ends it earlier.
  bool keeps_to_steps = false;
  /// Called with a sentence for people for each part of a planner that failed, while the plan is valid all the same:
  /// a solver of `ilp` that gave up. May be empty.
  std::function<void(const std::string&)> note{};
  /// The ways besides copies that a plan may use. Only plan_with_ways(), and `best` of v2::make_plan(), know any.
  Ways ways{};
};

/// A planner: a pure function that gives the same plan for the same trace and machine, if PlanningOptions::go_on gives
/// the same answers. The plan is for that trace (`trace_digest` is the trace's digest()) and that machine; the caller
/// checks it with validate(). A Problem says why there is no plan. The library's planners fill in `predicted` with
/// simulate(). Their only Problem is a bundle that does not fit; it names operation, need and budget.
using Planner = std::function<Result<Plan>(const Trace& trace, const Machine& machine, const PlanningOptions& options)>;

/// A planner with a name, as planners() lists them.
struct NamedPlanner {
  std::string name;     ///< name for make_plan() and SchedulerOptions::planner
  Planner make;         ///< the function
  std::string summary;  ///< one line for people
};

}  // namespace swapmm
