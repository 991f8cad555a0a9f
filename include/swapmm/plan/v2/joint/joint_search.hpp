// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <vector>

#include <swapmm/base/result.hpp>
#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/plan.hpp>
#include <swapmm/plan/planner.hpp>
#include <swapmm/plan/v2/joint/turns.hpp>
#include <swapmm/plan/v2/plan.hpp>
#include <swapmm/plan/v2/relaxation/lower_bound.hpp>
#include <swapmm/plan/v2/spread/spread_plans.hpp>

namespace swapmm::v2::planning {

/// Searches for the fastest plan for several engines that compute, each with its own memory, whose links may share
/// capacities. It chooses among plans of each device alone, which were made for several parts of the links' speed, and
/// lets devices take turns on what they share; simulate() judges every choice. Without PlanningOptions::go_on, the
/// result is never slower than the plans of `best` for each device alone. Fills in all but `planner` and the bound.
/// `lower_bound` is asked for a bound when there is a good plan; the search ends if a plan is as fast.
///
/// A Problem if only one engine computes, if engines share tensors or memories, or if stores are full.
[[nodiscard]] Result<Plan> search_jointly(const Trace& trace, const Machine& machine, const PlanningOptions& options,
                                          const LazyBound& lower_bound);

/// A plan for several devices, and what it was put together from.
struct JointPlan {
  Plan plan;                           ///< without planner and bound
  std::vector<swapmm::Plan> parts;     ///< the plans for each device alone
  std::vector<CommandOrigin> origins;  ///< of each command of `plan`
};

/// The same for parts that are known. `most`: the most that devices may wait for each other; with Turns::Who::later,
/// only for those that come before them in `all.parts`. `known`: for each part a plan for the device alone, or null;
/// may be empty. The result is not slower than these plans side by side.
[[nodiscard]] Result<JointPlan> search_parts(const SpreadCase& all, const PlanningOptions& options,
                                             const LazyBound& lower_bound, Turns::Who most,
                                             std::span<const swapmm::Plan* const> known = {});

}  // namespace swapmm::v2::planning
