// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include <swapmm/base/result.hpp>
#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/planner.hpp>
#include <swapmm/plan/v2/plan.hpp>

namespace swapmm::v2::planning {

/// Searches for the fastest plan for one engine that computes, whose device has direct links to several memories: which
/// tensors are away over which absences, and where each value is meanwhile. It is the search of `best` of version 1
/// (plan/search) with a link for each store; every plan is judged by simulate(). Fills in all but `planner` and the
/// bound. `lower_bound` is known; the search ends if a plan is as fast.
///
/// A Problem if more engines compute, if no memory is linked to the device in both directions, if the stores are full,
/// or if the host, which is not linked, must give or read tensors.
[[nodiscard]] Result<Plan> search_stores(const Trace& trace, const Machine& machine, const PlanningOptions& options,
                                         std::chrono::nanoseconds lower_bound);

}  // namespace swapmm::v2::planning
