// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <swapmm/base/result.hpp>
#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/v2/baselines/residency.hpp>
#include <swapmm/plan/v2/plan.hpp>

namespace swapmm::v2::planning {

/// Which tensor leaves a memory if room is needed.
enum class Victim : std::uint8_t {
  least_recently_used,
  used_furthest_ahead,  ///< Belady's rule
};

/// Brings each bundle to the memory of its operation's engine right before the operation. If room is needed, tensors
/// leave for the nearest memory that has room and runs no operation, and from there for farther ones. Everything that
/// concerns one memory happens one after another; different memories work at the same time.
///
/// Persistent tensors, inputs and what the host reads have a place outside of all memories that run operations, which
/// is always kept: in the host if it has room, otherwise in the nearest memory that has.
///
/// Fills in all but `planner` and `predicted`. A Problem if a bundle does not fit, if memories are full, or if there is
/// no path.
[[nodiscard]] Result<Plan> on_demand(const Trace& trace, const Machine& machine, Victim victim,
                                     Holes holes = Holes::lowest);

}  // namespace swapmm::v2::planning
