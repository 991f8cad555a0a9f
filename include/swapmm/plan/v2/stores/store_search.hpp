// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include <swapmm/base/result.hpp>
#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/planner.hpp>
#include <swapmm/plan/v2/plan.hpp>
#include <swapmm/plan/v2/relaxation/lower_bound.hpp>

namespace swapmm::v2::planning {

/// Traces of up to so many operations are searched in milliseconds.
inline constexpr std::size_t few_operations = 100;

/// Searches for the fastest plan for one engine that computes, whose device can reach several memories: which tensors
/// are away over which absences, and where each value is meanwhile. It is the search of `best` of version 1
/// (plan/search) with a link for each store; every plan is judged by simulate(). Fills in all but `planner` and the
/// bound. `lower_bound` is asked for a bound when there is a good plan; the search ends if a plan is as fast.
///
/// A Problem if more engines compute, if no memory can be reached from the device and back, if the stores are full, or
/// if there is no way to the host, which must give or read tensors.
[[nodiscard]] Result<Plan> search_stores(const Trace& trace, const Machine& machine, const PlanningOptions& options,
                                         const LazyBound& lower_bound);

}  // namespace swapmm::v2::planning
