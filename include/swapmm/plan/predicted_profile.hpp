// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <swapmm/base/export.hpp>
#include <swapmm/ir/profile.hpp>
#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/plan.hpp>

namespace swapmm {

/// The profile that the simulator predicts for a valid plan in the steady state. It covers one repetition: one
/// iteration, or as many as it takes until they repeat. Time 0 is the end of the last operation of the iteration
/// before. A copy that runs in the repetition before or after is shown at the time of the same copy in this repetition,
/// in two parts if it crosses the border. Bytes count from the start of an allocate or swap_in to the end of the
/// release, with sizes rounded up to the alignment. The peak is the one of Prediction. If iterations never repeat,
/// because copies that nothing waits for fall further and further behind, the profile is the last simulated iteration,
/// and copies may overlap. Costs as much as simulate().
[[nodiscard]] SWAPMM_EXPORT Profile predicted_profile(const Trace& trace, const Plan& plan);

}  // namespace swapmm
