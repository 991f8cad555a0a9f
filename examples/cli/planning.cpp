// SPDX-License-Identifier: Apache-2.0
#include "planning.hpp"

#include <utility>

#include <swapmm/base/text/figures.hpp>
#include <swapmm/plan/ilp.hpp>
#include <swapmm/plan/simulate.hpp>
#include <swapmm/plan/validate.hpp>

#include "quantities.hpp"

namespace swapmm::cli {
namespace {

using Clock = std::chrono::steady_clock;

std::string progress_text(const PlanningProgress& progress) {
  if (progress.iteration.count() == 0) return "no plan yet";
  return text::time_text(progress.iteration) + ", at least " + text::time_text(progress.lower_bound);
}

Result<Plan> plan_by(std::string_view name, const Trace& trace, const Machine& machine,
                     const PlanningOptions& options) {
  for (const NamedPlanner& planner : known_planners()) {
    if (planner.name == name) return planner.make(trace, machine, options);
  }
  return make_plan(name, trace, machine, options);
}

}  // namespace

std::span<const NamedPlanner> known_planners() {
  static const std::vector<NamedPlanner> known = [] {
    std::vector<NamedPlanner> all(planners().begin(), planners().end());
#ifdef SWAPMM_CLI_HAS_ILP
    all.push_back(ilp_planner());
#endif
    return all;
  }();
  return known;
}

PlanningOptions options_within(TimeLimit limit, Progress& progress) {
  PlanningOptions options;
  if (!limit) return options;
  options.go_on = [start = Clock::now(), limit = *limit, &progress](const PlanningProgress& reached) {
    progress.detail(progress_text(reached));
    return Clock::now() - start < limit;
  };
  return options;
}

Planned run_planner(std::string_view name, const Trace& trace, const Machine& machine, TimeLimit limit,
                    Progress& progress) {
  const Clock::time_point start = Clock::now();
  Result<Plan> plan = plan_by(name, trace, machine, options_within(limit, progress));
  const std::chrono::nanoseconds took = Clock::now() - start;
  if (plan) {
    if (const std::vector<Violation> violations = validate(trace, *plan); !violations.empty()) {
      plan = Problem{"planner " + std::string(name) +
                     " made a plan that is not valid, which is a mistake of swapmm: " + violations.front().message};
    }
  }
  if (plan && plan->predicted.iteration >= longest_iteration) {
    plan = Problem{"an iteration takes longer than 2^62 ns: the link is too slow"};
  }
  return {std::move(plan), took};
}

std::string planner_names() {
  std::string names;
  for (const NamedPlanner& planner : known_planners()) names += (names.empty() ? "" : ", ") + planner.name;
  return names;
}

Result<std::string> parse_planner(std::string_view name) {
  for (const NamedPlanner& planner : known_planners()) {
    if (planner.name == name) return std::string(name);
  }
  if (name == "ilp") return Problem{"this command was built without COIN-OR Cbc, which the planner \"ilp\" needs"};
  return Problem{"no planner is called \"" + std::string(name) + "\"; there are " + planner_names()};
}

Result<std::vector<std::string>> parse_planners(std::string_view text) {
  if (text != "all") return parse_each(text, parse_planner);
  std::vector<std::string> names;
  for (const NamedPlanner& planner : planners()) names.emplace_back(planner.name);
  return names;
}

void add_planner_options(CLI::App& command, std::string& planner, TimeLimit& limit) {
  add_parsed(command, "--planner", planner, parse_planner, planner_names() + " [" + planner + "]", "NAME");
  add_parsed(command, "--time-limit", limit, parse_time,
             "For each plan, of planners that search: 10s. Without it a set number of steps, always the same plan",
             "TIME");
}

}  // namespace swapmm::cli
