// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cctype>
#include <cstddef>
#include <string>
#include <vector>

#include <swapmm/ir/liveness.hpp>
#include <swapmm/plan/v2/validate.hpp>
#include <swapmm/plan/v2/ways.hpp>
#include <swapmm/plan/ways.hpp>

#include "parts.hpp"

namespace swapmm::bench {
namespace {

constexpr double shares[] = {0.5, 0.35, 0.2, 0.1};
constexpr double gigabytes_per_second[] = {6, 12, 25, 55};

/// The trace with what could run again declared so: all that updates nothing, but random operations.
Trace with_replayable(Trace trace) {
  for (TraceOperation& operation : trace.operations) {
    std::string name = operation.name;
    std::ranges::transform(name, name.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    const bool is_random = name.find("dropout") != std::string::npos || name.find("rand") != std::string::npos;
    operation.replayable = operation.updates.empty() && !is_random;
  }
  return trace;
}

struct RecomputeCase {
  std::string name;
  Trace trace;
  double share = 0;
  double bandwidth = 0;
};

const std::string& name_of(const RecomputeCase& one) { return one.name; }

std::vector<RecomputeCase> cases_of(const Settings& settings) {
  std::vector<RecomputeCase> all;
  for (const std::string& name : settings.traces) {
    const Trace trace = load_trace(name);
    for (const double share : shares) {
      for (const double bandwidth : gigabytes_per_second) all.push_back({trace.name, trace, share, bandwidth});
    }
  }
  return chosen_of(all, settings);
}

}  // namespace

Report run_ways(const Settings& settings) {
  Report report;
  report.rows.title = "Copies alone, and with recomputation: time / computation";
  report.rows.columns = {"trace", "budget / peak", "GB/s",    "copies",         "their bound", "mixed",
                         "bound", "run again",     "time, %", "mixed / copies", "seconds"};
  const double limit = settings.limit_or(10);
  const std::vector<RecomputeCase> chosen = cases_of(settings);
  Progress progress("ways", chosen.size(), settings.quiet);
  Ratios gains;
  Ratios over_bound;
  for (const RecomputeCase& one : chosen) {
    progress.step(one.name);
    const Trace trace = with_replayable(one.trace);
    const Bytes least = analyze_liveness(one.trace, Bytes{256}).largest_bundle;
    const Bytes budget = std::max(part_of(peak_of(one.trace), one.share), least);
    const Machine machine = machine_with(budget, one.bandwidth * 1e9);
    const Planned copies = plan_within("best", one.trace, machine, limit);
    const auto start = std::chrono::steady_clock::now();
    const Result<PlanWithWays> mixed = plan_with_ways(trace, machine, within(limit));
    const double seconds = seconds_since(start);
    const Result<v2::Plan> plan = mixed ? v2::from_ways(trace, *mixed) : Result<v2::Plan>(mixed.problem());
    if (!copies.plan || !plan || !v2::validate(trace, *plan).empty()) {
      report.lines.push_back(one.name + ": " + (plan ? "no plan, or one that breaks a rule" : plan.problem().message));
      report.is_sound = false;
      continue;
    }
    const double compute = copies.compute();
    const auto time = static_cast<double>(mixed->plan.predicted.iteration.count());
    const auto bound = static_cast<double>(mixed->plan.predicted.lower_bound.count());
    double again = 0;
    for (const Replay& replay : mixed->ways.replays) {
      again += static_cast<double>(trace.operations[index(replay.operation)].duration.count());
    }
    if (bound > std::min(time, copies.iteration())) report.is_sound = false;
    gains.add(time / copies.iteration());
    over_bound.add(time / bound);
    report.rows.rows.push_back(
        {one.name, fixed(one.share, 2), fixed(one.bandwidth, 0), fixed(copies.iteration() / compute, 3),
         fixed(static_cast<double>(copies.plan->predicted.lower_bound.count()) / compute, 3), fixed(time / compute, 3),
         fixed(bound / compute, 3), std::to_string(mixed->ways.replays.size()), fixed(100 * again / compute, 1),
         fixed(time / copies.iteration(), 3), fixed(seconds, 1)});
  }
  const auto line = [&](const std::string& what, const Ratios& ratios) {
    if (ratios.count != 0) report.lines.push_back(summary_of(what, ratios));
  };
  line("mixed / copies", gains);
  line("mixed / its bound", over_bound);
  return report;
}

}  // namespace swapmm::bench
