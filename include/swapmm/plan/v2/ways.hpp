// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <swapmm/base/export.hpp>
#include <swapmm/base/result.hpp>
#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/v2/plan.hpp>
#include <swapmm/plan/ways.hpp>

namespace swapmm::v2 {

/// The same plan in version 2, where replays are commands `run`, and codings commands `encode` and `decode` on the
/// engine that computes; divided tensors are in pieces. `trace` is the original one. A Problem if the plan
/// is for another program. Linear, except for sorting the ways.
[[nodiscard]] SWAPMM_EXPORT Result<Plan> from_ways(const Trace& trace, const PlanWithWays& plan);

/// The way back: of what from_ways() makes it gives the same plan, and ways that with_ways() writes out as the same
/// program. `trace` is the original one. A Problem if the plan is for another program, or says what version 1 and ways
/// cannot: more memories than a device and a host, copies at positions of their own, operations that run again in
/// another iteration or in another order than that of the program. Whether the plan is valid is not checked. Linear,
/// except for sorting the ways.
[[nodiscard]] SWAPMM_EXPORT Result<PlanWithWays> to_ways(const Trace& trace, const Plan& plan);

}  // namespace swapmm::v2
