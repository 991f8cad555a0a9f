// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <swapmm/base/export.hpp>
#include <swapmm/base/result.hpp>
#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/recompute.hpp>
#include <swapmm/plan/v2/plan.hpp>

namespace swapmm::v2 {

/// The same plan in version 2, where replays are commands `run`. `trace` is the original one, with its replayable
/// operations. A Problem if the plan is for another program. Linear, except for sorting the replays.
[[nodiscard]] SWAPMM_EXPORT Result<Plan> from_recomputing(const Trace& trace, const RecomputingPlan& plan);

}  // namespace swapmm::v2
