// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <swapmm/base/export.hpp>
#include <swapmm/ir/profile.hpp>
#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/plan.hpp>

namespace swapmm {

/// What the simulator says of a valid plan in the steady state, as a picture that repeats itself: one iteration, or as
/// many as it takes until they repeat. Time 0 is the end of the last operation of the iteration before. A copy that
/// runs in the repetition before or after is shown where the same copy runs in this one, in two parts where it crosses
/// the border. Bytes count from the start of an allocate or swap_in to the end of the release, sizes rounded up to the
/// alignment; the peak is that of Prediction. Where iterations never repeat (copies that nothing waits for fall ever
/// further behind) it is the last one simulated, and copies may overlap. As costly as simulate().
[[nodiscard]] SWAPMM_EXPORT Profile predicted_profile(const Trace& trace, const Plan& plan);

}  // namespace swapmm
