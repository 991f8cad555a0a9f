// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <swapmm/base/result.hpp>
#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/machine.hpp>
#include <swapmm/plan/plan.hpp>
#include <swapmm/plan/planner.hpp>

// This folder answers the questions of the command `swapmm` and of the Python package about traces and plans: the same
// figures, as data and as JSON.

namespace swapmm::answers {

using TimeLimit = std::optional<std::chrono::nanoseconds>;

/// Whoever waits for long work.
class Watcher {
 public:
  Watcher() = default;
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;
  virtual ~Watcher() = default;

  /// Called before each part of the work, with what it is. It may throw to end the work.
  virtual void begin(const std::string& what) = 0;
  /// Called during a search, every few milliseconds of work. Returns whether the search shall go on.
  virtual bool reached(const PlanningProgress& progress) = 0;
};

/// What came of a planner.
struct Planned {
  Result<Plan> plan;
  std::chrono::nanoseconds took{0};
  std::vector<std::string> notes{};  ///< PlanningOptions::note
};

/// Options that end a search so long after now, by a steady clock, and show its progress; without a limit, none.
[[nodiscard]] PlanningOptions options_within(TimeLimit limit, Watcher& watcher);

/// The same for a watcher that may end each search, also those without a limit. These take their fixed number of steps:
/// if nobody ends them, they give the same plan as without options.
[[nodiscard]] PlanningOptions options_watched(TimeLimit limit, Watcher& watcher);

/// Runs a planner, and keeps its notes. A plan that validate() refuses is a Problem, too.
[[nodiscard]] Planned run_planner(const NamedPlanner& planner, const Trace& trace, const Machine& machine,
                                  PlanningOptions options);

/// One of planners(). A Problem lists the names.
[[nodiscard]] Result<NamedPlanner> planner_called(const std::string& name);

/// Plans for another machine.
using PlanOn = std::function<Planned(const Machine&)>;

/// "1.250 s, at least 1.200 s"
[[nodiscard]] std::string progress_text(const PlanningProgress& progress);

}  // namespace swapmm::answers
