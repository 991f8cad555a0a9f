// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include <swapmm/options.hpp>
#include <swapmm/scheduler.hpp>

namespace swapmm::test {

/// For programs on a real clock: a plan, once made, stays, and its rounds are not timed, so that neither what is
/// followed nor what is asked of an API hangs on measured times.
inline SchedulerOptions steady(SchedulerOptions options = {}) {
  options.sample_every = 0;
  options.trial_iterations = 0;
  options.replan_above = 0;
  return options;
}
inline Scheduler steady_plans(SchedulerOptions options = {}) { return Scheduler(steady(std::move(options))); }

}  // namespace swapmm::test
