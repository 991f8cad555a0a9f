// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/v2/spread/spread.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/plan/planners.hpp>
#include <swapmm/plan/problem/part_of_time.hpp>
#include <swapmm/plan/v2/schedule/prediction.hpp>
#include <swapmm/plan/v2/spread/spread_plans.hpp>
#include <swapmm/plan/v2/validate.hpp>

namespace swapmm::v2::planning {
namespace {

/// How many speeds of the merged host are tried, from what all links carry together down to what the slowest carries.
/// Fewer than all are right if devices share links, or if near memories are small.
constexpr int speeds = 4;
/// How often a planner that searches may ask whether to go on when a speed is tried. It asks every few milliseconds.
constexpr int short_search = 60;

/// The slowest link to a store, as a part of all links to the stores of its device; the largest of all devices.
double slowest_part(const Machine& machine, const std::vector<std::vector<Store>>& stores) {
  double largest = 0;
  for (const std::vector<Store>& of_device : stores) {
    double all = 0;
    double slowest = 0;
    for (const Store& store : of_device) {
      const auto rate = static_cast<double>(machine.links[index(store.in)].bytes_per_second);
      all += rate;
      slowest = slowest == 0 ? rate : std::min(slowest, rate);
    }
    if (all > 0) largest = std::max(largest, slowest / all);
  }
  return largest;
}

}  // namespace

Result<Plan> spread_at(std::string_view planner, const SpreadCase& all, double speed, const PlanningOptions& options) {
  std::vector<swapmm::Plan> plans;
  for (std::size_t part = 0; part < all.parts.size(); ++part) {
    Result<swapmm::Plan> plan =
        swapmm::make_plan(planner, all.parts[part].trace, machine_of_part(all, part, speed), options);
    if (!plan) return plan.problem();
    plans.push_back(*std::move(plan));
  }
  std::vector<const swapmm::Plan*> of_parts;
  of_parts.reserve(plans.size());
  for (const swapmm::Plan& plan : plans) of_parts.push_back(&plan);
  Result<SpreadPlan> spread = spread_plans(all, of_parts);
  if (!spread) return spread.problem();
  Plan plan = std::move(spread->plan);
  if (const auto violations = validate(all.trace, plan); !violations.empty()) {
    return Problem{"the plan is not valid, which is a mistake of swapmm: " + violations.front().message};
  }
  predict(all.trace, plan);
  return plan;
}

Result<Plan> spread(std::string_view planner, const Trace& trace, const Machine& machine,
                    const PlanningOptions& options) {
  const Result<SpreadCase> all = make_spread_case(trace, machine);
  if (!all) return all.problem();
  std::optional<Plan> best;
  std::optional<Problem> problem;
  double best_speed = 1;
  const double slowest = slowest_part(machine, all->stores);
  for (int i = 0; i < speeds && (i == 0 || slowest < 1); ++i) {
    const double speed = i == 0 ? 1 : std::pow(slowest, static_cast<double>(i) / (speeds - 1));
    PlanningOptions shorter = swapmm::planning::for_short_search(options, short_search);
    shorter.note = {};  // the long search says the same
    Result<Plan> plan = spread_at(planner, *all, speed, shorter);
    if (!plan) {
      problem = plan.problem();
    } else if (!best || plan->predicted.iteration < best->predicted.iteration) {
      best = *std::move(plan);
      best_speed = speed;
    }
  }
  if (!best) return *problem;
  Result<Plan> plan = spread_at(planner, *all, best_speed, options);
  if (plan && plan->predicted.iteration < best->predicted.iteration) best = *std::move(plan);
  return *std::move(best);
}

}  // namespace swapmm::v2::planning
