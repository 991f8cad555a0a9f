// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include <swapmm/plan/planner.hpp>

namespace swapmm::planning {

/// Whether a search goes on until it is told to end, and not for a fixed number of steps.
inline bool is_by_clock(const PlanningOptions& options) { return options.go_on && !options.keeps_to_steps; }

/// The same limits for a search that has the time from one part of all time to another: it asks for parts of its own.
/// Without a clock there are none.
inline PlanningOptions in_part_of_time(PlanningOptions options, double from, double to) {
  if (!options.go_on) return options;
  options.go_on = [all = std::move(options.go_on), from, to](PlanningProgress progress) {
    progress.part = from + (to - from) * progress.part;
    return all(progress);
  };
  return options;
}

/// The same limits for a search that may ask fewer than so many times whether to go on.
inline PlanningOptions for_short_search(PlanningOptions options, int most_questions) {
  options.keeps_to_steps = false;
  options.go_on = [all = std::move(options.go_on), most_questions,
                   asked = 0](const PlanningProgress& progress) mutable {
    return ++asked < most_questions && (!all || all(progress));
  };
  return options;
}

}  // namespace swapmm::planning
