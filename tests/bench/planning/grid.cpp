// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <numeric>
#include <random>
#include <utility>

#include <swapmm/plan/validate.hpp>

#include "bounds.hpp"
#include "parts.hpp"

namespace swapmm::bench {
namespace {

constexpr double shares[] = {0.9, 0.7, 0.5, 0.35};
constexpr double gigabytes_per_second[] = {12, 15.754, 25, 55};
constexpr double speeds[] = {1, 0.2, 0.05};

struct GridInstance {
  Instance instance;
  double share = 1;
  double bandwidth = 1;  ///< GB/s
  double speed = 1;      ///< durations are multiplied by it
};

struct Outcome {
  bool has_plan = false;
  std::string problem;
  double iteration = 0;
  double compute = 0;
  double bound = 0;
  double seconds = 0;
  std::size_t violations = 0;

  // The bound and the sum of the durations are rounded, so a little is let go.
  [[nodiscard]] bool must_stall() const { return bound > compute * 1.0000001; }
  [[nodiscard]] bool stalls_needlessly() const { return has_plan && !must_stall() && iteration > bound * 1.00001; }
  [[nodiscard]] double ratio() const { return iteration / bound; }
  [[nodiscard]] bool is_sound() const { return violations == 0 && iteration >= bound * (1 - 1e-9) - 1; }
};

std::vector<GridInstance> instances_of(const std::vector<std::string>& traces) {
  std::vector<GridInstance> grid;
  for (const std::string& name : traces) {
    const Trace trace = load_trace(name);
    const Bytes peak = peak_of(trace);
    for (const double speed : speeds) {
      for (const double share : shares) {
        for (const double bandwidth : gigabytes_per_second) {
          grid.push_back(
              {{trace.name, with_scaled_durations(trace, speed), machine_with(part_of(peak, share), bandwidth * 1e9)},
               share,
               bandwidth,
               speed});
        }
      }
    }
  }
  return grid;
}

/// Every so-manieth of a shuffled list, always the same ones, in the order of the list.
std::vector<std::size_t> sample(std::size_t count, std::size_t every) {
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  std::mt19937_64 random(1);
  for (std::size_t i = count; i > 1; --i) std::swap(order[i - 1], order[random() % i]);
  std::vector<std::size_t> chosen;
  for (std::size_t i = 0; i < count; i += std::max<std::size_t>(every, 1)) chosen.push_back(order[i]);
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

Outcome measure(const GridInstance& grid, double bound, const std::string& planner, double limit) {
  const Planned planned = plan_within(planner, grid.instance.trace, grid.instance.machine, limit);
  Outcome outcome;
  outcome.seconds = planned.seconds;
  outcome.bound = bound;
  outcome.problem = planned.problem;
  if (!planned.plan) return outcome;
  outcome.has_plan = true;
  outcome.iteration = planned.iteration();
  outcome.compute = planned.compute();
  outcome.bound = std::max({bound, outcome.compute, static_cast<double>(planned.plan->predicted.lower_bound.count())});
  outcome.violations = validate(grid.instance.trace, *planned.plan).size();
  return outcome;
}

struct Summary {
  std::size_t instances = 0;
  std::size_t without_plan = 0;
  std::size_t needless = 0;
  std::size_t violations = 0;
  Ratios must_stall;
  double seconds = 0;
  double longest = 0;

  void add(const Outcome& outcome) {
    ++instances;
    seconds += outcome.seconds;
    longest = std::max(longest, outcome.seconds);
    violations += outcome.violations;
    if (!outcome.has_plan) {
      ++without_plan;
    } else if (outcome.must_stall()) {
      must_stall.add(outcome.ratio());
    } else if (outcome.stalls_needlessly()) {
      ++needless;
    }
  }

  [[nodiscard]] std::vector<std::string> row(const std::string& name) const {
    return {name,
            std::to_string(instances),
            std::to_string(without_plan),
            std::to_string(must_stall.count),
            must_stall.count > 0 ? fixed(must_stall.geometric_mean(), 4) : "",
            must_stall.count > 0 ? fixed(must_stall.worst, 4) : "",
            std::to_string(instances - without_plan - must_stall.count),
            std::to_string(needless),
            fixed(seconds / static_cast<double>(std::max<std::size_t>(instances, 1)), 2),
            fixed(longest, 2),
            std::to_string(violations)};
  }
};

const std::vector<std::string> summary_columns{
    "",          "instances", "no plan",          "must stall", "time / bound, geometric mean",
    "worst",     "need not",  "stall needlessly", "mean s",     "longest s",
    "violations"};

struct Measured {
  const GridInstance* grid;
  Outcome outcome;
};

/// Rows in the order in which groups occur in the whole grid.
Table summary_table(const std::vector<GridInstance>& grid, const std::vector<Measured>& all, const std::string& title,
                    const std::function<std::string(const GridInstance&)>& group) {
  std::map<std::string, Summary> summaries;
  for (const Measured& one : all) summaries[group(*one.grid)].add(one.outcome);
  std::vector<std::string> order;
  for (const GridInstance& one : grid) {
    std::string name = group(one);
    if (summaries.contains(name) && std::find(order.begin(), order.end(), name) == order.end()) {
      order.push_back(std::move(name));
    }
  }
  Table table{title, summary_columns, {}};
  for (const std::string& name : order) table.rows.push_back(summaries.at(name).row(name));
  return table;
}

Table worst_table(std::vector<Measured> all) {
  std::erase_if(all, [](const Measured& one) { return !one.outcome.has_plan; });
  std::stable_sort(all.begin(), all.end(),
                   [](const Measured& a, const Measured& b) { return a.outcome.ratio() > b.outcome.ratio(); });
  Table table{
      "The farthest from the bound:", {"trace", "compute", "budget / peak", "GB/s", "time / bound", "must stall"}, {}};
  constexpr std::size_t shown = 10;
  for (std::size_t i = 0; i < std::min(shown, all.size()); ++i) {
    const GridInstance& grid = *all[i].grid;
    const Outcome& outcome = all[i].outcome;
    if (!outcome.must_stall() && !outcome.stalls_needlessly()) break;
    table.rows.push_back({grid.instance.name, fixed(grid.speed, 2), fixed(grid.share, 2), fixed(grid.bandwidth, 3),
                          fixed(outcome.ratio(), 4), outcome.must_stall() ? "yes" : "no"});
  }
  return table;
}

std::vector<std::string> row_of(const GridInstance& grid, const Outcome& outcome, const std::string& planner,
                                double limit) {
  const bool ok = outcome.has_plan;
  return {grid.instance.name,
          fixed(grid.speed, 2),
          fixed(grid.share, 2),
          fixed(grid.bandwidth, 3),
          planner,
          fixed(limit, 2),
          ok ? fixed(outcome.iteration, 0) : "",
          fixed(outcome.bound, 0),
          ok ? fixed(outcome.compute, 0) : "",
          ok ? fixed(outcome.ratio(), 6) : "",
          ok && outcome.must_stall() ? "1" : "0",
          outcome.stalls_needlessly() ? "1" : "0",
          fixed(outcome.seconds, 3),
          std::to_string(outcome.violations),
          outcome.problem};
}

}  // namespace

Report run_grid(const Settings& settings) {
  const std::vector<GridInstance> grid = instances_of(settings.traces);
  const std::vector<std::size_t> chosen = sample(grid.size(), settings.sample);
  Bounds bounds(settings);
  std::vector<const Instance*> to_bound;
  to_bound.reserve(chosen.size());
  for (const std::size_t i : chosen) to_bound.push_back(&grid[i].instance);
  bounds.provide(to_bound);

  const double limit = settings.limit_or(1);
  Report report;
  report.rows = {
      "",
      {"trace", "compute_scale", "share", "gigabytes_per_second", "planner", "limit_s", "iteration_ns", "bound_ns",
       "compute_ns", "ratio", "must_stall", "stalls_needlessly", "planning_s", "violations", "problem"},
      {}};
  std::vector<Measured> measured;
  {
    Progress progress("plans", chosen.size(), settings.quiet);
    for (const std::size_t i : chosen) {
      const std::optional<double> bound = bounds.of(grid[i].instance);
      Outcome outcome = measure(grid[i], bound.value_or(0), settings.planner, limit);
      if (outcome.has_plan && !outcome.is_sound()) report.is_sound = false;
      report.rows.rows.push_back(row_of(grid[i], outcome, settings.planner, limit));
      measured.push_back({&grid[i], std::move(outcome)});
      progress.step(grid[i].instance.name);
    }
  }
  const std::string searched = limit > 0 ? ", told to end after " + fixed(limit, 1) + " s:" : ", as long as it takes:";
  const auto summarize = [&](const std::string& title, const std::function<std::string(const GridInstance&)>& group) {
    report.summaries.push_back(summary_table(grid, measured, title, group));
  };
  summarize(settings.planner + searched, [](const GridInstance&) { return std::string("all"); });
  summarize("By trace:", [](const GridInstance& one) { return one.instance.name; });
  summarize("By budget / peak:", [](const GridInstance& one) { return fixed(one.share, 2); });
  summarize("By GB/s:", [](const GridInstance& one) { return fixed(one.bandwidth, 3); });
  summarize("By compute:", [](const GridInstance& one) { return fixed(one.speed, 2); });
  report.summaries.push_back(worst_table(measured));
  return report;
}

}  // namespace swapmm::bench
