// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

#include <swapmm/plan/problem/planning_case.hpp>
#include <swapmm/plan/recompute/replays.hpp>

namespace swapmm::planning {

/// A time such that no plan with copies and replays has a shorter iteration. `planning` is the case of the trace
/// without replayable operations.
///
/// While an operation runs, what is live beyond the budget is somewhere else. Each of its bytes is copied back later,
/// or its operation runs again. If y bytes are made again, cheapest first, the iteration takes at least as long as all
/// computation, and as the copies of the other bytes. The bound is the least of the larger of both over all y, for the
/// worst operation. Linear in operations x live tensors.
[[nodiscard]] std::chrono::nanoseconds recomputing_bound(const Trace& trace, const ValueHistory& history,
                                                         const PlanningCase& planning);

}  // namespace swapmm::planning
