// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <random>
#include <span>

#include <swapmm/answers/disturbances.hpp>
#include <swapmm/plan/simulate.hpp>
#include <swapmm/plan/step_times.hpp>

#include "parts.hpp"

namespace swapmm::bench {
namespace {

constexpr const char* files[] = {"BERT_Base_b256", "VIT_b512"};
constexpr double shares[] = {0.5, 0.35};
constexpr double bytes_per_second = 15.754e9;
constexpr double noise = 0.25;
constexpr double faster = 0.8;
constexpr answers::SlowLink slow_link{0.5, 0.2};
constexpr int draws = 20;
constexpr int starts = 5;  ///< of the slow part: each fifth of the iteration once

double simulated(const Trace& trace, const Plan& plan) {
  return static_cast<double>(simulate(trace, plan).iteration.count());
}

double simulated_with_slow_link(const Trace& trace, const Plan& plan, double start) {
  StepTimes times = step_times(trace, plan);
  answers::slow_down(times, slow_link, start, plan, simulate(trace, plan));
  return static_cast<double>(simulate(trace, plan, times).iteration.count());
}

Trace with_noise(Trace trace, std::mt19937_64& random) {
  for (TraceOperation& operation : trace.operations) {
    const double even = static_cast<double>(random() >> 11U) * 0x1.0p-53;
    operation.duration = std::chrono::nanoseconds{
        std::llround(static_cast<double>(operation.duration.count()) * (1 - noise + 2 * noise * even))};
  }
  return trace;
}

double compute_of(const Trace& trace) {
  double sum = 0;
  for (const TraceOperation& operation : trace.operations) sum += static_cast<double>(operation.duration.count());
  return sum;
}

/// Percentage points of slowdown that a plan lost against one that knew.
struct Losses {
  int count = 0;
  double sum = 0;
  double worst = 0;
  double slowdown = 0;  ///< of the plan, summed
  double knew = 0;      ///< of the one that knew, summed

  void add(double plan, double knowing, double compute) {
    // Planners search: what knew less may by chance be better, and then one that knew would have taken it.
    const double best = std::min(plan, knowing);
    const double lost = 100 * (plan - best) / compute;
    ++count;
    sum += lost;
    worst = std::max(worst, lost);
    slowdown += plan / compute;
    knew += best / compute;
  }

  [[nodiscard]] std::vector<std::string> row(const std::string& trace, double share, const std::string& what) const {
    return {trace,
            fixed(share, 2),
            what,
            std::to_string(count),
            fixed(slowdown / count, 4),
            fixed(knew / count, 4),
            fixed(sum / count, 2),
            fixed(worst, 2)};
  }
};

class Robustness {
 public:
  Robustness(const Settings& settings, Report& report)
      : settings_(settings),
        limit_(settings.limit_or(1)),
        report_(report),
        progress_("robust", std::size(files) * std::size(shares) * (draws + 2), settings.quiet) {}

  void measure(const Trace& trace, double share) {
    const Machine machine = machine_with(part_of(peak_of(trace), share), bytes_per_second);
    const Planned made = plan(trace, machine);
    if (!made.plan) {
      report_.lines.push_back(trace.name + ": " + made.problem);
      report_.is_sound = false;
      return;
    }
    const auto row = [&](const Losses& losses, const char* what) {
      report_.rows.rows.push_back(losses.row(trace.name, share, what));
    };
    row(with_noisy_durations(trace, machine, *made.plan), "durations +-25 % each");
    row(with_slow_link(trace, machine, *made.plan), "link at half speed for a fifth");
    row(with_faster_compute(trace, machine, *made.plan), "computation takes 20 % less");
  }

 private:
  Planned plan(const Trace& trace, const Machine& machine) {
    return plan_within(settings_.planner, trace, machine, limit_);
  }

  void compare(const Trace& changed, const Machine& machine, const Plan& made, Losses& losses) {
    progress_.step(changed.name);
    const double planned = simulated(changed, made);
    const Planned knowing = plan(changed, machine);
    losses.add(planned, knowing.plan ? knowing.iteration() : planned, compute_of(changed));
  }

  Losses with_noisy_durations(const Trace& trace, const Machine& machine, const Plan& made) {
    std::mt19937_64 random(1);
    Losses losses;
    for (int draw = 0; draw < draws; ++draw) compare(with_noise(trace, random), machine, made, losses);
    return losses;
  }

  Losses with_faster_compute(const Trace& trace, const Machine& machine, const Plan& made) {
    Losses losses;
    compare(with_scaled_durations(trace, faster), machine, made, losses);
    return losses;
  }

  /// No planner takes a link that varies. Those that knew were made for the mean speed, and for half of it.
  Losses with_slow_link(const Trace& trace, const Machine& machine, const Plan& made) {
    progress_.step(trace.name);
    std::vector<Planned> others;
    const double mean = 1 - slow_link.part * (1 - slow_link.speed);
    for (const double speed : {mean, slow_link.speed}) {
      others.push_back(plan(trace, machine_with(machine.device_budget, bytes_per_second * speed)));
      // The link itself is as fast as before.
      if (others.back().plan) others.back().plan->machine = machine;
    }
    Losses losses;
    for (int i = 0; i < starts; ++i) {
      const double start = static_cast<double>(i) / starts;
      const double planned = simulated_with_slow_link(trace, made, start);
      double knowing = planned;
      for (const Planned& other : others) {
        if (other.plan) knowing = std::min(knowing, simulated_with_slow_link(trace, *other.plan, start));
      }
      losses.add(planned, knowing, compute_of(trace));
    }
    return losses;
  }

  const Settings& settings_;
  double limit_;
  Report& report_;
  Progress progress_;
};

}  // namespace

Report run_robust(const Settings& settings) {
  Report report;
  report.rows = {settings.planner + ", 15.754 GB/s each way:",
                 {"trace", "budget / peak", "what changes", "cases", "slowdown of the plan", "of one that knew",
                  "points lost, mean", "worst"},
                 {}};
  Robustness robustness(settings, report);
  for (const char* file : files) {
    const Trace trace = load_trace(std::string("tests/data/traces/g10/") + file + ".json");
    for (const double share : shares) robustness.measure(trace, share);
  }
  report.lines.emplace_back(
      "Slowdown is over the sum of the durations as they are then; a point is a hundredth of that sum. One that knew: "
      "planned for the changed durations; for the slow link the best of plans made for its mean and for its half "
      "speed.");
  return report;
}

}  // namespace swapmm::bench
