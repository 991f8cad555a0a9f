// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>

#include <swapmm/base/result.hpp>
#include <swapmm/plan/machine.hpp>
#include <swapmm/plan/planner_options.hpp>
#include <swapmm/plan/problem/planning_case.hpp>
#include <swapmm/plan/ways/program/history.hpp>

namespace swapmm::planning {

/// Which plans a bound of a divided trace is for.
enum class BoundFor : std::uint8_t {
  pieces,   ///< those for its pieces
  tensors,  ///< those for the tensors, too, whose pieces are copied together
};

/// A time such that no plan with copies, replays and codings has a shorter iteration. `planning` is the case of
/// without_ways(trace). The larger one of two bounds.
///
/// In the first, one operation is looked at. While an operation runs, what is live beyond the budget is somewhere else.
/// Each of its bytes comes back later: by a copy, by its operation, which runs again, or by a decoding, for which the
/// bytes of its form are copied, or keep their place. The iteration takes at least as long as all computation, and as
/// all copies in, so at least as long as any weighted mean of both. For a weight, each byte takes the way that is
/// cheapest then, and the cheapest bytes are away. The bound is the largest such mean, over the weights and the
/// operations. Takes operations x live tensors x their logarithm.
///
/// The second is bound_with_replays(), over all of the iteration, for copies that move the fewest bytes that a form
/// promises. With the usual effort it takes up to about a second for a thousand operations.
[[nodiscard]] std::chrono::nanoseconds ways_bound(const Trace& trace, const ValueHistory& history,
                                                  const PlanningCase& planning, BoundFor plans = BoundFor::pieces,
                                                  const BoundOptions& options = {});

/// The same for a trace with all that version 2 has but engines, on a machine whose alignment does not count: pieces
/// may leave less than a multiple of it unused. A Problem if a bundle does not fit.
[[nodiscard]] Result<std::chrono::nanoseconds> ways_bound(const Trace& trace, Machine machine,
                                                          const BoundOptions& options = {});

}  // namespace swapmm::planning
