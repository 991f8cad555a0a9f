// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include <swapmm/options.hpp>
#include <swapmm/scheduler.hpp>

namespace swapmm::test {

/// For programs on a real clock: a plan, once made, stays, so that what is followed does not hang on measured times.
inline SchedulerOptions steady(SchedulerOptions options = {}) {
  options.trial_iterations = 0;
  options.replan_above = 0;
  return options;
}
inline Scheduler steady_plans(SchedulerOptions options = {}) { return Scheduler(steady(std::move(options))); }

}  // namespace swapmm::test
