// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include <swapmm/plan/planners.hpp>
#include <swapmm/plan/problem/overlap_ledger.hpp>
#include <swapmm/plan/problem/planning_case.hpp>
#include <swapmm/plan/relaxation/lower_bound.hpp>
#include <swapmm/plan/simulate.hpp>
#include <swapmm/plan/validate.hpp>

#include "bounds.hpp"
#include "parts.hpp"
#include "training_trace.hpp"

namespace swapmm::bench {

using namespace planning;
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t sizes[] = {1'000, 2'000, 5'000, 10'000, 20'000, 50'000, 100'000};
/// The tight bound of more would take minutes; the plan's own stands in.
constexpr std::size_t most_for_tight_bound = 10'000;
/// As far as the planner is also left to end by itself.
constexpr std::size_t most_for_own_end = 2'000;
/// A plan that is at most so much above the bound is a first good one.
constexpr double good = 1.05;
/// Where the first good plan took longer, larger traces are left out.
constexpr double too_long = 120;

/// The exponent k of seconds ~ operations^k, by least squares over the logarithms.
double exponent(const std::vector<std::pair<double, double>>& points) {
  const auto n = static_cast<double>(points.size());
  double x = 0, y = 0, xx = 0, xy = 0;
  for (const auto& [operations, seconds] : points) {
    const double a = std::log(operations), b = std::log(seconds);
    x += a;
    y += b;
    xx += a * a;
    xy += a * b;
  }
  return (n * xy - x * y) / (n * xx - x * x);
}

/// The first plan that is good, or the one there is after `limit` seconds.
Planned first_good_plan(const std::string& planner, const Instance& instance, double limit) {
  const auto start = Clock::now();
  PlanningOptions options;
  options.go_on = [&](const PlanningProgress& so_far) {
    const auto bound = static_cast<double>(so_far.lower_bound.count());
    const auto iteration = static_cast<double>(so_far.iteration.count());
    return (iteration == 0 || iteration > good * bound) && seconds_since(start) < limit;
  };
  Result<Plan> plan = plan_by(planner, instance.trace, instance.machine, options);
  Planned planned;
  planned.seconds = seconds_since(start);
  if (plan) {
    planned.plan = *std::move(plan);
  } else {
    planned.problem = plan.problem().message;
  }
  return planned;
}

/// Seconds of what every planner, or everyone who uses a plan, does with it.
struct PartTimes {
  double analysis = 0;
  double relaxation = 0;
  double validation = 0;
  double simulation = 0;
};

template <class Work>
double seconds_of(Work&& work) {
  const auto start = Clock::now();
  work();
  return seconds_since(start);
}

class Scale {
 public:
  explicit Scale(const Settings& settings) : settings_(settings), bounds_(settings), limit_(settings.limit_or(60)) {
    report_.rows = {settings.planner +
                        " on training_trace.hpp, half of the peak, 15.754 GB/s each way, until a plan is at most " +
                        fixed(good, 2) + " of its bound, or for " + fixed(limit_, 0) + " s:",
                    {"operations", "tensors", "planning s", "time / bound", "bound", "analysis s", "relaxation s",
                     "validation s", "simulation s", "violations", "to its own end s", "its time / bound"},
                    {}};
  }

  Report run() {
    Progress progress("scale", std::size(sizes), settings_.quiet);
    for (const std::size_t size : sizes) {
      if (size > settings_.largest) break;
      if (!times_.empty() && times_.back().second > too_long) {
        report_.lines.push_back("Larger ones are left out: they would take too long.");
        break;
      }
      Instance instance{"", training_trace(size, 1), {}};
      instance.name = instance.trace.name;
      instance.machine = machine_with(part_of(peak_of(instance.trace), 0.5), 15.754e9);
      measure(instance);
      progress.step(instance.name);
    }
    if (times_.size() > 1) {
      report_.lines.push_back("Planning time grows with operations ^ " + fixed(exponent(times_), 2) +
                              " (n log n from 1,000 to 100,000: ^ 1.11).");
    }
    return std::move(report_);
  }

 private:
  void measure(const Instance& instance) {
    const Planned planned = first_good_plan(settings_.planner, instance, limit_);
    if (!planned.plan) {
      report_.lines.push_back(instance.name + ": " + planned.problem);
      report_.is_sound = false;
      return;
    }
    const std::size_t operations = instance.trace.operations.size();
    times_.emplace_back(static_cast<double>(operations), planned.seconds);
    PartTimes parts;
    std::optional<Result<PlanningCase>> planning;
    std::optional<OverlapLedger> ledger;
    parts.analysis = seconds_of([&] {
      planning.emplace(make_planning_case(instance.trace, instance.machine));
      ledger.emplace(**planning);
    });
    RelaxedSwaps relaxed;
    parts.relaxation = seconds_of([&] { relaxed = relax_swaps(**planning, *ledger); });
    std::size_t violations = 0;
    parts.validation = seconds_of([&] { violations = validate(instance.trace, *planned.plan).size(); });
    parts.simulation = seconds_of([&] { (void)simulate(instance.trace, *planned.plan); });

    const bool is_tight = operations <= most_for_tight_bound;
    const double own = std::max({static_cast<double>(relaxed.lower_bound.count()), planned.compute(),
                                 static_cast<double>(planned.plan->predicted.lower_bound.count())});
    const double bound = is_tight ? std::max(own, bounds_.of(instance).value_or(0)) : own;
    if (violations > 0 || planned.iteration() < bound * (1 - 1e-9) - 1) report_.is_sound = false;
    std::vector<std::string> row{std::to_string(operations),
                                 std::to_string(instance.trace.tensors.size()),
                                 fixed(planned.seconds, 3),
                                 fixed(planned.iteration() / bound, 4),
                                 is_tight ? "tight" : "the plan's",
                                 fixed(parts.analysis, 3),
                                 fixed(parts.relaxation, 3),
                                 fixed(parts.validation, 3),
                                 fixed(parts.simulation, 3),
                                 std::to_string(violations),
                                 "",
                                 ""};
    if (operations <= most_for_own_end) {
      const Planned whole = plan_within(settings_.planner, instance.trace, instance.machine, 0);
      row[10] = fixed(whole.seconds, 3);
      if (whole.plan) row[11] = fixed(whole.iteration() / bound, 4);
    }
    report_.rows.rows.push_back(std::move(row));
  }

  const Settings& settings_;
  Bounds bounds_;
  double limit_;
  std::vector<std::pair<double, double>> times_;
  Report report_;
};

}  // namespace

Report run_scale(const Settings& settings) { return Scale(settings).run(); }

}  // namespace swapmm::bench
