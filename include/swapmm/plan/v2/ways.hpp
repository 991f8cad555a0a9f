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

}  // namespace swapmm::v2
