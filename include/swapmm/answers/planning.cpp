// SPDX-License-Identifier: Apache-2.0
#include <swapmm/answers/planning.hpp>

#include <utility>
#include <vector>

#include <swapmm/base/text/figures.hpp>
#include <swapmm/ir/limits.hpp>
#include <swapmm/plan/planners.hpp>
#include <swapmm/plan/simulate.hpp>
#include <swapmm/plan/validate.hpp>

namespace swapmm::answers {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

std::string progress_text(const PlanningProgress& progress) {
  if (progress.iteration.count() == 0) return "no plan yet";
  return text::time_text(progress.iteration) + ", at least " + text::time_text(progress.lower_bound);
}

PlanningOptions options_watched(TimeLimit limit, Watcher& watcher) {
  PlanningOptions options;
  options.keeps_to_steps = !limit;
  options.go_on = [start = Clock::now(), limit, &watcher](const PlanningProgress& reached) {
    return watcher.reached(reached) && (!limit || Clock::now() - start < reached.part * *limit);
  };
  return options;
}

PlanningOptions options_within(TimeLimit limit, Watcher& watcher) {
  return limit ? options_watched(limit, watcher) : PlanningOptions{};
}

Planned run_planner(const NamedPlanner& planner, const Trace& trace, const Machine& machine, PlanningOptions options) {
  const Clock::time_point start = Clock::now();
  std::vector<std::string> notes;
  options.note = [&notes](const std::string& note) { notes.push_back(note); };
  Result<Plan> plan = planner.make(trace, machine, options);
  const std::chrono::nanoseconds took = Clock::now() - start;
  if (plan) {
    if (const std::vector<Violation> violations = validate(trace, *plan); !violations.empty()) {
      plan = Problem{"planner " + planner.name +
                     " made a plan that is not valid, which is a mistake of swapmm: " + violations.front().message};
    }
  }
  if (plan && plan->predicted.iteration >= longest_iteration) {
    plan = Problem{"an iteration takes longer than 2^62 ns: the link is too slow"};
  }
  return {std::move(plan), took, std::move(notes)};
}

Result<NamedPlanner> planner_called(const std::string& name) {
  std::string names;
  for (const NamedPlanner& planner : planners()) {
    if (planner.name == name) return planner;
    names += (names.empty() ? "" : ", ") + planner.name;
  }
  return Problem{"no planner is called \"" + name + "\"; there are " + names};
}

}  // namespace swapmm::answers
