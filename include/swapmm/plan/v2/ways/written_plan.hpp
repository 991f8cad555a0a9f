// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/v2/plan.hpp>
#include <swapmm/plan/ways.hpp>

namespace swapmm::v2::planning {

/// A plan for the written-out program with_ways(trace, ways), in which values are only copied, as one for the trace.
/// Its replays and codings become commands, on the engine that computes.
[[nodiscard]] Plan with_commands_of_ways(const Trace& trace, const WrittenTrace& written, const WaysBack& ways,
                                         Plan plan);

}  // namespace swapmm::v2::planning
