// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <ctime>
#include <string>
#include <vector>

#include <swapmm/plan/planners.hpp>
#include <swapmm/plan/v2/planners.hpp>
#include <swapmm/plan/v2/schedule/prediction.hpp>
#include <swapmm/plan/v2/spread/spread_plans.hpp>
#include <swapmm/plan/v2/validate.hpp>

#include "device_instances.hpp"
#include "parts.hpp"

namespace swapmm::bench {
namespace {

/// Of this process, so that other work beside it changes nothing.
double processor_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

PlanningOptions within_processor_time(double seconds) {
  PlanningOptions options;
  const double start = processor_seconds();
  if (seconds > 0) {
    options.go_on = [start, seconds](const PlanningProgress& progress) {
      return processor_seconds() - start < progress.part * seconds;
    };
  }
  return options;
}

/// Each device planned alone, as if it had a part of the shared capacity for itself, and then all at once. Devices that
/// run the same have the same plan, so that the time for planning is divided among different programs only.
double independent(const Trace& trace, const v2::Machine& machine, double speed, double seconds) {
  const auto all = v2::planning::make_spread_case(trace, machine);
  if (!all) return 0;
  std::vector<std::size_t> first;  // of each part: the first one that is the same
  std::size_t different = 0;
  for (std::size_t p = 0; p < all->parts.size(); ++p) {
    std::size_t same = 0;
    while (same < p && !(all->parts[same].trace == all->parts[p].trace &&
                         v2::planning::machine_of_part(*all, same, 1) == v2::planning::machine_of_part(*all, p, 1))) {
      ++same;
    }
    first.push_back(same);
    different += same == p ? 1 : 0;
  }
  std::vector<Plan> plans(all->parts.size());
  std::vector<const Plan*> of_parts;
  for (std::size_t p = 0; p < all->parts.size(); ++p) {
    if (first[p] == p) {
      const auto plan = make_plan("best", all->parts[p].trace, v2::planning::machine_of_part(*all, p, speed),
                                  within_processor_time(seconds / static_cast<double>(different)));
      if (!plan) return 0;
      plans[p] = *plan;
    }
    of_parts.push_back(&plans[first[p]]);
  }
  auto spread = v2::planning::spread_plans(*all, of_parts);
  if (!spread) return 0;
  v2::planning::predict(trace, spread->plan);
  return static_cast<double>(spread->plan.predicted.iteration.count());
}

}  // namespace

Report run_devices(const Settings& settings) {
  Report report;
  report.rows.title = "Devices behind one link: time / the largest sum of durations of a device";
  report.rows.columns = {"instance", "operations",         "each alone",  "each with 1/D", "joint",
                         "bound",    "each alone / joint", "1/D / joint", "joint / bound", "seconds"};
  const double limit = settings.limit_or(10);
  const std::vector<DeviceInstance> chosen = chosen_of(device_instances(), settings);
  Progress progress("devices", chosen.size(), settings.quiet);
  Ratios over_alone;
  Ratios over_shares;
  Ratios over_bound;
  for (const DeviceInstance& instance : chosen) {
    progress.step(name_of(instance));
    const v2::planning::Devices devices(programs_of(instance), capacities_of(instance));
    const Trace& trace = devices.trace();
    const v2::Machine& machine = devices.machine();
    const double alone = independent(trace, machine, 1, limit);
    const double shares = independent(trace, machine, 1.0 / instance.devices, limit);
    const double start = processor_seconds();
    const auto plan = v2::make_plan(settings.planner, trace, machine, within_processor_time(limit));
    const double seconds = processor_seconds() - start;
    if (!plan || !v2::validate(trace, *plan).empty() || alone == 0 || shares == 0) {
      report.lines.push_back(name_of(instance) + ": " + (plan ? "a plan breaks a rule" : plan.problem().message));
      report.is_sound = false;
      continue;
    }
    const auto compute = static_cast<double>(plan->predicted.compute.count());
    const auto time = static_cast<double>(plan->predicted.iteration.count());
    const auto bound = static_cast<double>(plan->predicted.lower_bound.count());
    if (bound > std::min({time, alone, shares})) report.is_sound = false;
    over_alone.add(alone / time);
    over_shares.add(shares / time);
    over_bound.add(time / bound);
    report.rows.rows.push_back({name_of(instance), std::to_string(trace.operations.size()), fixed(alone / compute, 3),
                                fixed(shares / compute, 3), fixed(time / compute, 3), fixed(bound / compute, 3),
                                fixed(alone / time, 3), fixed(shares / time, 3), fixed(time / bound, 3),
                                fixed(seconds, 1)});
  }
  const auto line = [&](const std::string& what, const Ratios& ratios) {
    report.lines.push_back(summary_of(what, ratios));
  };
  line("each alone / joint", over_alone);
  line("each with 1/D / joint", over_shares);
  line("joint / bound", over_bound);
  return report;
}

}  // namespace swapmm::bench
