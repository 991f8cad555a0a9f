// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string_view>

#include <swapmm/plan/schedule/schedule.hpp>

namespace swapmm::planning {

/// The number of bytes for the next choice of stays, after stays within `asked` bytes needed `height` bytes of places.
/// The first step is proportional. Later steps are larger, because stays that pack badly may continue to do so.
[[nodiscard]] inline std::uint64_t shrink_to_fit(const PlanningCase& planning, std::uint64_t asked, Bytes height,
                                                 int attempt) {
  const double overrun = static_cast<double>(height.value) / static_cast<double>(planning.budget);
  const double step = std::max(1.005, 1 + (overrun - 1) * (1 + 0.5 * attempt));
  return std::max(planning.liveness.largest_bundle.value,
                  static_cast<std::uint64_t>(static_cast<double>(asked) / step));
}

/// Makes the plan of the first schedule that packs. `choose(bytes)` returns stays that need no more than `bytes` at any
/// time. It is called with the budget, then with less, because places need more room than bytes. If nothing packs, each
/// use gets its own stay. The plan has no digest and no prediction.
template <class Choose>
Result<Plan> build_fitting_plan(const PlanningCase& planning, std::string_view planner, Pace pace, Choose&& choose) {
  constexpr int attempts = 8;
  constexpr PackingEffort effort{.ejection_steps = 500};  // a little more traffic costs less than a long search here
  std::uint64_t bytes = planning.budget;
  for (int attempt = 0; attempt < attempts; ++attempt) {
    Result<BuiltPlan> built = build_plan(planning, {pace, choose(bytes)}, planner, effort);
    if (!built) return built.problem();
    if (built->plan) return *std::move(built->plan);
    const std::uint64_t asked = bytes;
    bytes = shrink_to_fit(planning, asked, built->height, attempt);
    if (bytes >= asked) break;
  }
  return build_per_operation_plan(planning, pace, planner);
}

}  // namespace swapmm::planning
