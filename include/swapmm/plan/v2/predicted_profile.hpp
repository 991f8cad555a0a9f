// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <swapmm/base/export.hpp>
#include <swapmm/ir/trace.hpp>
#include <swapmm/ir/v2/profile.hpp>
#include <swapmm/plan/v2/plan.hpp>

namespace swapmm::v2 {

/// The profile that the simulator predicts for a valid plan in the long run. It covers one repetition: one iteration,
/// or as many as it takes until they repeat. Time 0 is the end of the iteration before. Each engine that runs
/// operations, or commands that run, encode or decode, is a row, and so is each link that copies. A copy is in the row
/// of its link, and in that of its engine if that engine has a row. What crosses the beginning or the end is there in
/// two parts. Bytes are occupied from the start of the command that takes the place to the end of the `release`, with
/// sizes rounded up to the alignment. If iterations never repeat, the profile is the last simulated iteration. Costs as
/// much as simulate().
[[nodiscard]] SWAPMM_EXPORT Profile predicted_profile(const Trace& trace, const Plan& plan);

}  // namespace swapmm::v2
