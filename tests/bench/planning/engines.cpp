// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <map>
#include <string>
#include <vector>

#include <swapmm/plan/v2/planners.hpp>
#include <swapmm/plan/v2/validate.hpp>

#include "engine_instances.hpp"
#include "parts.hpp"

namespace swapmm::bench {

Report run_engines(const Settings& settings) {
  Report report;
  report.rows.columns = {"instance",     "operations",    "time, us", "time / compute",
                         "time / bound", "belady / time", "seconds"};
  const double limit = settings.limit_or(5);
  const std::vector<EngineInstance> chosen = chosen_of(engine_instances(), settings);
  Progress progress("engines", chosen.size(), settings.quiet);
  struct Group {
    Ratios bound;
    Ratios belady;
  };
  std::map<std::string, Group> groups;
  for (const EngineInstance& instance : chosen) {
    progress.step(name_of(instance));
    const EngineProgram program = program_of(instance);
    const auto start = std::chrono::steady_clock::now();
    const Result<v2::Plan> plan = v2::make_plan(settings.planner, program.trace, program.machine, within(limit));
    const double seconds = seconds_since(start);
    const Result<v2::Plan> simple = v2::make_plan("belady", program.trace, program.machine);
    if (!plan || !simple || !v2::validate(program.trace, *plan).empty()) {
      report.lines.push_back(name_of(instance) + ": " + (plan ? "a plan breaks a rule" : plan.problem().message));
      report.is_sound = false;
      continue;
    }
    const auto ns = [](std::chrono::nanoseconds time) { return static_cast<double>(time.count()); };
    const double time = ns(plan->predicted.iteration);
    const double bound = ns(plan->predicted.lower_bound);
    const double belady = ns(simple->predicted.iteration);
    if (bound > time) report.is_sound = false;
    for (const std::string& group : {std::string("all"), std::string(to_string(instance.sharing))}) {
      groups[group].bound.add(time / bound);
      groups[group].belady.add(belady / time);
    }
    report.rows.rows.push_back({name_of(instance), std::to_string(program.trace.operations.size()),
                                fixed(time / 1e3, 2), fixed(time / ns(plan->predicted.compute), 4),
                                fixed(time / bound, 4), fixed(belady / time, 4), fixed(seconds, 2)});
  }
  Table summary{settings.planner + ", told to end after " + fixed(limit, 1) + " s, geometric means:",
                {"", "instances", "time / bound", "worst", "belady / time"},
                {}};
  for (const auto& [name, group] : groups) {
    summary.rows.push_back({name, std::to_string(group.bound.count), fixed(group.bound.geometric_mean(), 4),
                            fixed(group.bound.worst, 4), fixed(group.belady.geometric_mean(), 4)});
  }
  report.summaries.push_back(std::move(summary));
  report.summaries.push_back(report.rows);
  return report;
}

}  // namespace swapmm::bench
