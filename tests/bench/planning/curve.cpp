// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include <swapmm/ir/liveness.hpp>
#include <swapmm/plan/planners.hpp>
#include <swapmm/plan/validate.hpp>

#include "bounds.hpp"
#include "parts.hpp"

namespace swapmm::bench {
namespace {

constexpr const char* files[] = {"BERT_Base_b256", "VIT_b512"};
constexpr double bytes_per_second = 15.754e9;
/// Of the peak, as long as the largest bundle fits; that bundle itself is the last one.
constexpr double shares[] = {1,    0.9,  0.8,  0.7, 0.6,  0.5,  0.42, 0.35, 0.28,
                             0.22, 0.17, 0.13, 0.1, 0.07, 0.05, 0.03, 0.02};

std::vector<std::pair<double, Instance>> steps_of(const Trace& trace) {
  const Liveness liveness = analyze_liveness(trace, Bytes{256});
  const double least = static_cast<double>(liveness.largest_bundle.value) / static_cast<double>(liveness.peak.value);
  std::vector<std::pair<double, Instance>> steps;
  for (const double share : shares) {
    if (share < least * 1.1) break;
    steps.push_back({share, {trace.name, trace, machine_with(part_of(liveness.peak, share), bytes_per_second)}});
  }
  steps.push_back({least, {trace.name, trace, machine_with(liveness.largest_bundle, bytes_per_second)}});
  return steps;
}

/// Rows of the file: one for each plan and each bound.
class Curve {
 public:
  Curve(const Settings& settings, Report& report) : settings_(settings), bounds_(settings), report_(report) {
    report_.rows = {"",
                    {"trace", "share", "budget_bytes", "planner", "slowdown", "iteration_ns", "compute_ns", "h2d_bytes",
                     "d2h_bytes", "planning_s", "violations", "problem"},
                    {}};
  }

  void measure(const Trace& trace) {
    const auto steps = steps_of(trace);
    std::vector<const Instance*> to_bound;
    to_bound.reserve(steps.size());
    for (const auto& [share, instance] : steps) to_bound.push_back(&instance);
    bounds_.provide(to_bound);
    Table table{trace.name + ", slowdown:", {"budget / peak", "GB"}, {}};
    for (const NamedPlanner& planner : all_planners()) table.columns.emplace_back(planner.name);
    table.columns.emplace_back("bound");
    Table times{trace.name + ", seconds of planning, mean and longest:", {"planner", "mean s", "longest s"}, {}};
    std::map<std::string_view, std::pair<double, double>> spent;
    Progress progress("curve", steps.size() * all_planners().size(), settings_.quiet);
    for (const auto& [share, instance] : steps) {
      std::vector<std::string> cells{fixed(share, 3), fixed(gigabytes(instance), 2)};
      double compute = 0;
      for (const TraceOperation& operation : trace.operations)
        compute += static_cast<double>(operation.duration.count());
      const double bound = std::max(bounds_.of(instance).value_or(0), compute);
      for (const NamedPlanner& planner : all_planners()) {
        const Planned planned = plan_within(planner.name, trace, instance.machine, settings_.limit_or(5));
        progress.step(trace.name + " " + std::string(planner.name));
        cells.push_back(add_plan(share, instance, planner.name, planned, bound));
        spent[planner.name].first += planned.seconds;
        spent[planner.name].second = std::max(spent[planner.name].second, planned.seconds);
      }
      cells.push_back(fixed(bound / compute, 3));
      report_.rows.rows.push_back({trace.name, fixed(share, 4), bytes_text(instance), "bound",
                                   fixed(bound / compute, 6), fixed(bound, 0), fixed(compute, 0), "", "", "", "", ""});
      table.rows.push_back(std::move(cells));
    }
    for (const NamedPlanner& planner : all_planners()) {
      const auto& [sum, longest] = spent[planner.name];
      times.rows.push_back(
          {std::string(planner.name), fixed(sum / static_cast<double>(steps.size()), 3), fixed(longest, 3)});
    }
    report_.summaries.push_back(std::move(table));
    report_.summaries.push_back(std::move(times));
  }

 private:
  static double gigabytes(const Instance& instance) {
    return static_cast<double>(instance.machine.device_budget.value) / 1e9;
  }
  static std::string bytes_text(const Instance& instance) {
    return std::to_string(instance.machine.device_budget.value);
  }

  /// The slowdown, as it stands in the table.
  std::string add_plan(double share, const Instance& instance, std::string_view planner, const Planned& planned,
                       double bound) {
    std::vector<std::string> row{instance.name, fixed(share, 4), bytes_text(instance), std::string(planner)};
    if (!planned.plan) {
      row.insert(row.end(), {"", "", "", "", "", fixed(planned.seconds, 3), "", planned.problem});
      report_.rows.rows.push_back(std::move(row));
      return "none";
    }
    const Prediction& predicted = planned.plan->predicted;
    const std::size_t violations = validate(instance.trace, *planned.plan).size();
    if (violations > 0 || planned.iteration() < bound * (1 - 1e-9) - 1) report_.is_sound = false;
    const double slowdown = planned.iteration() / planned.compute();
    row.insert(row.end(), {fixed(slowdown, 6), fixed(planned.iteration(), 0), fixed(planned.compute(), 0),
                           std::to_string(predicted.h2d.value), std::to_string(predicted.d2h.value),
                           fixed(planned.seconds, 3), std::to_string(violations), ""});
    report_.rows.rows.push_back(std::move(row));
    return fixed(slowdown, 3);
  }

  const Settings& settings_;
  Bounds bounds_;
  Report& report_;
};

}  // namespace

Report run_curve(const Settings& settings) {
  Report report;
  Curve curve(settings, report);
  for (const char* file : files) {
    curve.measure(load_trace(std::string("tests/data/traces/g10/") + file + ".json"));
  }
  return report;
}

}  // namespace swapmm::bench
