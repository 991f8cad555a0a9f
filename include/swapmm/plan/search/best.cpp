// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/search/best.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include <swapmm/plan/problem/part_of_time.hpp>
#include <swapmm/plan/problem/slower_links.hpp>
#include <swapmm/plan/schedule/best_plan.hpp>
#include <swapmm/plan/schedule/schedule.hpp>
#include <swapmm/plan/search/best_search.hpp>
#include <swapmm/plan/search/reordering.hpp>

namespace swapmm::planning {
namespace {

/// Looks for plans that are as fast as the best one, and faster if links are slower.
class SparedLinks {
 public:
  /// Plans up to `fast_enough` count as equally fast. `go_on` returns whether there is time.
  SparedLinks(const PlanningCase& planning, const BestOptions& options, std::chrono::nanoseconds fast_enough,
              BestPlan& best, std::function<bool()> go_on)
      : planning_(planning), options_(options), fast_enough_(fast_enough), best_(best), go_on_(std::move(go_on)) {}

  void run() {
    for (const double part : options_.spared_links.parts) {
      const Machine slower = with_slower_links(planning_.machine, part);
      if (!go_on_() || !check_machine(slower)) return;
      offer_for(slower);
      spared_.push_back(slower);
    }
  }

 private:
  void offer_for(const Machine& slower) {
    const Result<PlanningCase> slower_case = make_planning_case(planning_.trace, slower);
    if (!slower_case) return;
    Plan start = best_.plan();
    start.machine = slower;
    BestPlan best_of_slower(*slower_case, std::move(start));
    const Simulation before = best_of_slower.simulation();
    if (before.iteration <= before.compute) return;
    PlanningOptions limits;  // the caller's go_on expects the progress for the real machine
    limits.go_on = [this](const PlanningProgress&) { return go_on_(); };
    BestSearch(*slower_case, options_, limits, best_of_slower, go_on_).run({}, 1);
    if (!is_worth_copies(best_of_slower.simulation(), before, slower)) return;
    Plan found = std::move(best_of_slower).take();
    found.machine = planning_.machine;
    if (!is_slower_anywhere(found)) best_.offer_within(fast_enough_, std::move(found));
  }

  /// Whether the plan gains enough on a slower machine for the copies that it adds.
  [[nodiscard]] bool is_worth_copies(const Simulation& found, const Simulation& before, const Machine& slower) const {
    const double gained = std::chrono::duration<double>(before.iteration - found.iteration).count();
    const double added = seconds_of(found.h2d, slower.h2d) + seconds_of(found.d2h, slower.d2h) -
                         seconds_of(before.h2d, slower.h2d) - seconds_of(before.d2h, slower.d2h);
    return gained > 0 && added <= options_.spared_links.most_copies * gained;
  }
  // Not by copy_time(): all copies of an iteration together may take longer than nanoseconds can hold.
  static double seconds_of(Bytes bytes, const Link& link) {
    return static_cast<double>(bytes.value) / static_cast<double>(link.bytes_per_second);
  }

  /// Whether the plan is slower than the best plan on any of the slower machines that were tried before.
  [[nodiscard]] bool is_slower_anywhere(const Plan& found) const {
    return std::any_of(spared_.begin(), spared_.end(), [&](const Machine& machine) {
      return time_on(machine, found) > time_on(machine, best_.plan());
    });
  }
  [[nodiscard]] std::chrono::nanoseconds time_on(const Machine& machine, Plan plan) const {
    plan.machine = machine;
    return simulate(planning_.trace, plan).iteration;
  }

  const PlanningCase& planning_;
  const BestOptions& options_;
  std::chrono::nanoseconds fast_enough_;
  BestPlan& best_;
  std::function<bool()> go_on_;
  std::vector<Machine> spared_;
};

void spare_links(const PlanningCase& planning, const BestOptions& options, const PlanningOptions& limits,
                 const BestSearch& search, BestPlan& best) {
  if (!search.is_near_bound() || search.takes_long()) return;
  const std::chrono::nanoseconds reached = best.simulation().iteration;
  const PlanningProgress progress{reached, search.lower_bound()};
  const bool is_optimal = reached <= search.lower_bound();  // then the plan must stay optimal
  SparedLinks(planning, options, is_optimal ? reached : search.near_bound(), best, [&] {
    return !limits.go_on || limits.go_on(progress);
  }).run();
}

}  // namespace

ProvenPlan BestRun::finish() {
  search_.polish();
  if (!search_.is_near_bound()) search_.offer_belady();
  if (!search_.is_near_bound()) {
    reorder_copies(planning_, best_, [this] { return search_.is_near_bound() || search_.is_out_of_time(); });
  }
  spare_links(planning_, options_, limits_, search_, best_);
  return ProvenPlan{std::move(best_).take(), search_.lower_bound()};
}

Result<Plan> first_plan_of_best(const PlanningCase& planning) {
  return build_per_operation_plan(planning, Pace::one_at_a_time, "best");
}

Result<ProvenPlan> build_best_plan(const PlanningCase& planning, const BestOptions& options,
                                   const PlanningOptions& limits, std::span<const NamedPlanner> others) {
  Result<Plan> first = first_plan_of_best(planning);
  if (!first) return first.problem();
  BestRun run(planning, options, limits, others, *std::move(first));
  run.run(is_by_clock(limits) ? std::optional<int>{} : run.rounds_without_clock());
  return run.finish();
}

}  // namespace swapmm::planning
