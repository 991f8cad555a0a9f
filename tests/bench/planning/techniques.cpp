// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include <swapmm/plan/planner_options.hpp>
#include <swapmm/plan/planners.hpp>
#include <swapmm/plan/validate.hpp>

#include "bounds.hpp"
#include "parts.hpp"

namespace swapmm::bench {
namespace {

// All stored traces, computation five times as fast, half of the peak: here copies take the longest.
constexpr double share = 0.5;
constexpr double speed = 0.2;
constexpr double bytes_per_second = 15.754e9;

struct Variant {
  const char* off;  ///< the technique that is switched off; empty: none
  std::function<void(BestOptions&)> change;
};

std::vector<Variant> variants() {
  return {
      {"", [](BestOptions&) {}},
      {"other planners", [](BestOptions& o) { o.others.on = false; }},
      {"relaxed problem (a coarse one)", [](BestOptions& o) { o.bound.usual = {.groups = 4, .rounds = 1}; }},
      {"rounding by several thresholds", [](BestOptions& o) { o.rounding.thresholds = {0.5}, o.rounding.passes = 1; }},
      {"annealing", [](BestOptions& o) { o.annealing.most_tries = 0; }},
      {"worse neighbours (no warmth)", [](BestOptions& o) { o.annealing.warmth = 0; }},
      {"the relaxed solution as a guide", [](BestOptions& o) { o.annealing.relaxed_weight = 0; }},
      {"filling of remaining room", [](BestOptions& o) { o.annealing.fills_one_in = 0; }},
      {"several parts of the budget", [](BestOptions& o) { o.parts.packings = o.parts.later_packings = 1; }},
      {"parts near the last one", [](BestOptions& o) { o.parts.step = 0; }},
      {"time in hand", [](BestOptions& o) { o.parts.time_in_hand = o.places.time_in_hand = 0; }},
      {"forgetting of places", [](BestOptions& o) { o.parts.remembers_places = true; }},
      {"squeaky wheel in packing", [](BestOptions& o) { o.parts.packing.squeaky_wheel = false; }},
      {"ejection in packing", [](BestOptions& o) { o.parts.packing.ejection = false; }},
      {"filling of places", [](BestOptions& o) { o.places.looks = 0; }},
      {"moves of others for a place", [](BestOptions& o) { o.places.moves = 0; }},
      {"search near the best plan", [](BestOptions& o) { o.near_best.on = false; }},
      {"repeated search near it", [](BestOptions& o) { o.near_best.failures = 1; }},
      {"early returns", [](BestOptions& o) { o.early_returns.most_tries = 0; }},
      {"search for fewer bytes", [](BestOptions& o) { o.spared_bytes.tries = 0; }},
      {"spared links", [](BestOptions& o) { o.spared_links.parts = {}; }},
  };
}

/// What a variant made of one instance.
struct Outcome {
  bool has_plan = false;
  double iteration = 0;
  double bound = 0;
  double bytes = 0;
};

Outcome outcome_of(const NamedPlanner& planner, const Instance& instance, double limit, Report& report) {
  const Planned planned = plan_within(planner, instance.trace, instance.machine, limit);
  if (!planned.plan) {
    report.lines.push_back(instance.name + ": " + planned.problem);
    report.is_sound = false;
    return {};
  }
  if (!validate(instance.trace, *planned.plan).empty()) report.is_sound = false;
  const Prediction& predicted = planned.plan->predicted;
  return {true, planned.iteration(), static_cast<double>(predicted.lower_bound.count()),
          static_cast<double>(predicted.h2d.value + predicted.d2h.value)};
}

std::vector<Instance> stalling_instances(const std::vector<std::string>& traces) {
  std::vector<Instance> instances;
  for (const std::string& name : traces) {
    const Trace trace = load_trace(name);
    const Machine machine = machine_with(part_of(peak_of(trace), share), bytes_per_second);
    instances.push_back({trace.name, with_scaled_durations(trace, speed), machine});
  }
  return instances;
}

}  // namespace

Report run_techniques(const Settings& settings) {
  const double limit = settings.limit_or(1);
  const std::vector<Instance> instances = stalling_instances(settings.traces);
  const std::vector<Variant> all = variants();
  Report report;
  report.rows = {"", {"trace", "off", "iteration_ns", "bound_ns", "bytes"}, {}};
  std::vector<std::vector<Outcome>> outcomes(all.size());
  {
    Progress progress("techniques", all.size() * instances.size(), settings.quiet);
    for (std::size_t v = 0; v < all.size(); ++v) {
      BestOptions options;
      all[v].change(options);
      const NamedPlanner planner = best_planner(options);
      for (const Instance& instance : instances) {
        progress.step(all[v].off);
        const Outcome outcome = outcome_of(planner, instance, limit, report);
        report.rows.rows.push_back(
            {instance.name, all[v].off, fixed(outcome.iteration, 0), fixed(outcome.bound, 0), fixed(outcome.bytes, 0)});
        outcomes[v].push_back(outcome);
      }
    }
  }
  Table table{"`best` with one technique off, half of the peak, " + fixed(limit, 0) + " s:",
              {"off", "time / bound, geometric mean", "worst", "time / with all", "worst", "bytes / with all"},
              {}};
  for (std::size_t v = 0; v < all.size(); ++v) {
    Ratios bound_ratio, time_ratio, byte_ratio;
    for (std::size_t i = 0; i < instances.size(); ++i) {
      double bound = 0;  // a variant may know a worse one
      for (const auto& of_variant : outcomes) bound = std::max(bound, of_variant[i].bound);
      const Outcome& outcome = outcomes[v][i];
      const Outcome& usual = outcomes[0][i];
      if (!outcome.has_plan || !usual.has_plan) continue;
      bound_ratio.add(outcome.iteration / bound);
      time_ratio.add(outcome.iteration / usual.iteration);
      if (usual.bytes > 0 && outcome.bytes > 0) byte_ratio.add(outcome.bytes / usual.bytes);
    }
    table.rows.push_back({*all[v].off == '\0' ? "nothing" : all[v].off, fixed(bound_ratio.geometric_mean(), 4),
                          fixed(bound_ratio.worst, 4), fixed(time_ratio.geometric_mean(), 4),
                          fixed(time_ratio.worst, 4), fixed(byte_ratio.geometric_mean(), 3)});
  }
  report.summaries.push_back(std::move(table));
  return report;
}

}  // namespace swapmm::bench
