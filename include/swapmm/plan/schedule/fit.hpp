// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string_view>

#include <swapmm/plan/planner_options.hpp>
#include <swapmm/plan/schedule/schedule.hpp>

namespace swapmm::planning {

/// What to ask stays for next, where those within `asked` bytes need `height` bytes of places. The first step is in
/// proportion, each one after it bolder: what fits badly may go on fitting badly.
[[nodiscard]] inline std::uint64_t shrink_to_fit(const PlanningCase& planning, std::uint64_t asked, Bytes height,
                                                 int attempt, const FittingOptions& options) {
  const double overrun = static_cast<double>(height.value) / static_cast<double>(planning.budget);
  const double step = std::max(options.least_step, 1 + (overrun - 1) * (1 + options.boldness * attempt));
  return std::max(planning.liveness.largest_bundle.value,
                  static_cast<std::uint64_t>(static_cast<double>(asked) / step));
}

/// The plan of the first schedule that packs. `choose(bytes)` gives the stays that need no more than `bytes` at any
/// time; it is asked with the budget, then with less, since places cost more than bytes. What packs in no other way
/// falls back to every use on its own. The plan lacks digest and prediction.
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
