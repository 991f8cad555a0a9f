// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <swapmm/plan/v2/planners.hpp>
#include <swapmm/plan/v2/validate.hpp>

#include "memory_instances.hpp"
#include "parts.hpp"

namespace swapmm::bench {
namespace {

struct Group {
  Ratios all;
  Ratios must_stall;

  void add(double ratio, bool stalls) {
    all.add(ratio);
    if (stalls) must_stall.add(ratio);
  }
  [[nodiscard]] std::vector<std::string> row(const std::string& name) const {
    const auto mean = [](const Ratios& ratios) { return ratios.count > 0 ? fixed(ratios.geometric_mean(), 4) : ""; };
    return {name,
            std::to_string(all.count),
            mean(all),
            fixed(all.worst, 4),
            std::to_string(must_stall.count),
            mean(must_stall)};
  }
};

Report run_instances(const Settings& settings, const std::string& part, bool is_behind) {
  Report report;
  report.rows.columns = {"instance",        "operations",   "must stall",     "time / compute",
                         "bound / compute", "time / bound", "belady / bound", "seconds"};
  const double limit = settings.limit_or(30);
  const std::vector<MemoryInstance> chosen = chosen_of(memory_instances(), settings);
  Progress progress(part, chosen.size(), settings.quiet);
  Group all;
  std::map<std::string, Group> groups;
  for (const MemoryInstance& instance : chosen) {
    progress.step(name_of(instance));
    const Trace trace = trace_of(instance);
    const v2::Machine linked = machine_of(instance, trace);
    const v2::Machine machine = is_behind ? with_disk_behind(linked) : linked;
    const auto start = std::chrono::steady_clock::now();
    const Result<v2::Plan> plan = v2::make_plan(settings.planner, trace, machine, within(limit));
    const double seconds = seconds_since(start);
    if (!plan || !v2::validate(trace, *plan).empty()) {
      report.lines.push_back(name_of(instance) + ": " + (plan ? "a plan breaks a rule" : plan.problem().message));
      report.is_sound = false;
      continue;
    }
    const auto compute = static_cast<double>(plan->predicted.compute.count());
    const auto time = static_cast<double>(plan->predicted.iteration.count());
    const auto bound = static_cast<double>(plan->predicted.lower_bound.count());
    const Result<v2::Plan> simple = v2::make_plan("belady", trace, machine);
    const double belady = simple ? static_cast<double>(simple->predicted.iteration.count()) : 0;
    if (bound > time) report.is_sound = false;
    const bool stalls = bound > compute;
    all.add(time / bound, stalls);
    groups["shape " + std::string(to_string(instance.shape))].add(time / bound, stalls);
    groups[instance.near == Near::pinned ? "near: pinned" : "near: neighbour"].add(time / bound, stalls);
    report.rows.rows.push_back({name_of(instance), std::to_string(trace.operations.size()), stalls ? "1" : "0",
                                fixed(time / compute, 4), fixed(bound / compute, 4), fixed(time / bound, 4),
                                belady > 0 ? fixed(belady / bound, 4) : "", fixed(seconds, 2)});
  }
  Table summary{settings.planner + ", told to end after " + fixed(limit, 1) + " s:",
                {"", "instances", "time / bound, geometric mean", "worst", "must stall", "their geometric mean"},
                {all.row("all")}};
  for (const auto& [name, group] : groups) summary.rows.push_back(group.row(name));
  report.summaries.push_back(std::move(summary));
  report.summaries.push_back(report.rows);
  return report;
}

}  // namespace

Report run_memories(const Settings& settings) { return run_instances(settings, "memories", false); }
Report run_behind(const Settings& settings) { return run_instances(settings, "behind", true); }

}  // namespace swapmm::bench
