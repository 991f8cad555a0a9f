// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <swapmm/answers/planning.hpp>
#include <swapmm/answers/ways/ways.hpp>
#include <swapmm/base/result.hpp>
#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/machine.hpp>
#include <swapmm/plan/plan.hpp>
#include <swapmm/plan/planner.hpp>
#include <swapmm/plan/v2/plan.hpp>

// Plans with other ways back than copies, for one device and one host, in the terms of version 1: as plans for the
// program with these ways written out.

namespace swapmm::answers {

/// The program with the plan's ways written out, and the plan for it. The name of an operation that runs again says so.
struct AsVersion1 {
  Trace trace;
  Plan plan;
  WaysUsed used;
};

/// The plan must be valid for the trace. A Problem if it is for another machine than one device and one host.
[[nodiscard]] Result<AsVersion1> as_version_1(const Trace& trace, const v2::Plan& plan);

/// What came of a planner that knows other ways.
struct PlannedWays {
  Planned planned;  ///< for `trace`
  Trace trace;      ///< with the ways written out; empty without a plan
  v2::Plan plan;    ///< for the original trace
  WaysUsed used;
};

/// Runs a planner on a trace of version 2 without engines. `best` takes a set number of steps, unless
/// PlanningOptions::go_on ends it before.
[[nodiscard]] PlannedWays plan_ways(const std::string& planner, const Trace& trace, const Machine& machine,
                                    PlanningOptions options);

}  // namespace swapmm::answers
