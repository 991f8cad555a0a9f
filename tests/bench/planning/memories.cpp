// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <swapmm/plan/v2/planners.hpp>
#include <swapmm/plan/v2/simulate.hpp>
#include <cstdio>
#include <cstdlib>
#include <swapmm/plan/v2/validate.hpp>

#include "memory_instances.hpp"
#include "parts.hpp"

namespace swapmm::bench {
namespace {

PlanningOptions within(double seconds) {
  PlanningOptions options;
  const auto start = std::chrono::steady_clock::now();
  if (seconds > 0) options.go_on = [start, seconds](const PlanningProgress&) { return seconds_since(start) < seconds; };
  return options;
}

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

}  // namespace

Report run_memories(const Settings& settings) {
  Report report;
  report.rows.columns = {"instance",        "operations",   "must stall",     "time / compute",
                         "bound / compute", "time / bound", "belady / bound", "seconds"};
  const double limit = settings.limit_or(30);
  std::vector<MemoryInstance> chosen;
  for (std::size_t i = 0; i < memory_instances().size(); i += std::max<std::size_t>(settings.sample, 1)) {
    if (name_of(memory_instances()[i]).find(settings.only) == std::string::npos) continue;
    chosen.push_back(memory_instances()[i]);
  }
  Progress progress("memories", chosen.size(), settings.quiet);
  Group all;
  std::map<std::string, Group> groups;
  for (const MemoryInstance& instance : chosen) {
    progress.step(name_of(instance));
    const Trace trace = trace_of(instance);
    const v2::Machine machine = machine_of(instance, trace);
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
    if (std::getenv("B_TRACE")) {
      for (std::size_t l = 0; l < machine.links.size(); ++l) {
        std::fprintf(stderr, "link %s: %.4g bytes, busy %.3f of time, %.3f of bound\n", machine.links[l].name.c_str(), static_cast<double>(plan->predicted.links[l].value), static_cast<double>(plan->predicted.links[l].value) / static_cast<double>(machine.links[l].bytes_per_second) * 1e9 / time, static_cast<double>(plan->predicted.links[l].value) / static_cast<double>(machine.links[l].bytes_per_second) * 1e9 / bound);
      }
      const auto sim = v2::simulate(trace, *plan);
      std::vector<double> out_busy(21), in_busy(21), stall(21), near_held(21);
      for (std::size_t c = 0; c < plan->commands.size(); ++c) {
        if (plan->commands[c].kind != v2::CommandKind::copy || index(plan->commands[c].link) < 2) continue;
        for (int b = 0; b < 20; ++b) {
          const double lo = time * b / 20, hi = time * (b + 1) / 20;
          for (int turn = -1; turn <= 1; ++turn) {
            const double s0 = static_cast<double>(sim.commands[c].start.count()) + turn * time, e0 = static_cast<double>(sim.commands[c].end.count()) + turn * time;
            const double overlap = std::max(0.0, std::min(hi, e0) - std::max(lo, s0));
            (index(plan->commands[c].link) == 2 ? in_busy : out_busy)[b] += overlap / (hi - lo);
          }
        }
      }
      for (std::size_t i = 0; i < sim.operations.size(); ++i) {
        const double s0 = static_cast<double>(sim.operations[i].start.count()), e0 = static_cast<double>(sim.operations[i].end.count());
        for (int b = 0; b < 20; ++b) {
          const double lo = time * b / 20, hi = time * (b + 1) / 20;
          stall[b] += std::max(0.0, std::min(hi, e0) - std::max(lo, s0)) / (hi - lo);
        }
      }
      for (int b = 0; b < 20; ++b) std::fprintf(stderr, "  at %.2f: disk in %.2f out %.2f compute %.2f\n", b / 20.0, in_busy[b], out_busy[b], stall[b]);
    }
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

}  // namespace swapmm::bench
