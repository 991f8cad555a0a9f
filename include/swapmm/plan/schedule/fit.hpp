// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string_view>

#include <swapmm/plan/planner_options.hpp>
#include <swapmm/plan/schedule/schedule.hpp>

namespace swapmm::planning {

/// Returns the bytes to ask for next, if stays within `asked` bytes need `height` bytes of places. The first step is
/// proportional. Later ones are larger, because schedules that fit badly may continue to do so.
[[nodiscard]] inline std::uint64_t shrink_to_fit(const PlanningCase& planning, std::uint64_t asked, Bytes height,
                                                 int attempt, const FittingOptions& options) {
  const double overrun = static_cast<double>(height.value) / static_cast<double>(planning.budget);
  const double step = std::max(options.least_step, 1 + (overrun - 1) * (1 + options.boldness * attempt));
  return std::max(planning.liveness.largest_bundle.value,
                  static_cast<std::uint64_t>(static_cast<double>(asked) / step));
}

/// Makes the plan of the first schedule that packs. `choose(bytes)` returns stays that need at most `bytes` at any
/// time. It is called with the budget, then with less, because places cost more than bytes. If no schedule packs, every
/// use gets its own stay. The plan has no digest and no prediction.
template <class Choose>
Result<Plan> build_fitting_plan(const PlanningCase& planning, std::string_view planner, Pace pace,
                                const FittingOptions& options, Choose&& choose) {
  std::uint64_t bytes = planning.budget;
  for (int attempt = 0; attempt < options.attempts; ++attempt) {
    Result<BuiltPlan> built = build_plan(planning, {pace, choose(bytes)}, planner, options.packing);
    if (!built) return built.problem();
    if (built->plan) return *std::move(built->plan);
    const std::uint64_t asked = bytes;
    bytes = shrink_to_fit(planning, asked, built->height, attempt, options);
    if (bytes >= asked) break;
  }
  return build_per_operation_plan(planning, pace, planner);
}

}  // namespace swapmm::planning
