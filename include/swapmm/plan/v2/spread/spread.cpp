// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/v2/spread/spread.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

#include <swapmm/plan/planners.hpp>
#include <swapmm/plan/problem/part_of_time.hpp>
#include <swapmm/plan/v2/schedule/prediction.hpp>
#include <swapmm/plan/v2/spread/spread_shared.hpp>
#include <swapmm/plan/v2/validate.hpp>

namespace swapmm::v2::planning {
namespace {

constexpr int speeds_tried = 4;
/// How often a planner that searches may ask whether to go on when something is tried. It asks every few milliseconds.
constexpr int questions_of_try = 60;

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

double shared_part(const Machine& machine) {
  double least = 1;
  for (std::size_t c = 0; c < machine.capacities.size(); ++c) {
    double sum = 0;
    for (const Link& link : machine.links) {
      const bool uses = std::ranges::count(link.capacities, id_at<CapacityId>(c)) != 0;
      if (uses) sum += static_cast<double>(link.bytes_per_second);
    }
    if (sum > 0) least = std::min(least, static_cast<double>(machine.capacities[c].bytes_per_second) / sum);
  }
  return least;
}

std::vector<double> speeds_to_spread(const SpreadCase& all) {
  std::vector<double> result{1};
  const double least = std::min(slowest_part(all.machine, all.stores), shared_part(all.machine));
  for (int i = 1; i < speeds_tried && least < 1; ++i) {
    result.push_back(std::pow(least, static_cast<double>(i) / (speeds_tried - 1)));
  }
  return result;
}

Result<Plan> spread_at(std::string_view planner, const SpreadCase& all, double speed, const PlanningOptions& options,
                       std::optional<int> most_questions) {
  std::vector<swapmm::Plan> plans;
  const auto count = static_cast<double>(all.parts.size());
  for (std::size_t part = 0; part < all.parts.size(); ++part) {
    const auto before = static_cast<double>(part);
    PlanningOptions limits = swapmm::planning::in_part_of_time(options, before / count, (before + 1) / count);
    if (most_questions) {
      limits = swapmm::planning::for_short_search(std::move(limits), *most_questions);
      limits.note = {};  // a longer search says the same
    }
    Result<swapmm::Plan> plan =
        swapmm::make_plan(planner, all.parts[part].trace, machine_of_part(all, part, speed), limits);
    if (!plan) return plan.problem();
    plans.push_back(*std::move(plan));
  }
  return spread_parts(all, plans);
}

Result<Plan> spread_parts(const SpreadCase& all, const std::vector<swapmm::Plan>& plans) {
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
  if (!all) return trace.engines.empty() ? all.problem() : spread_shared(planner, trace, machine, options);
  std::optional<Plan> best;
  std::optional<Problem> problem;
  double best_speed = 1;
  for (const double speed : speeds_to_spread(*all)) {
    Result<Plan> plan = spread_at(planner, *all, speed, options, questions_of_try);
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
