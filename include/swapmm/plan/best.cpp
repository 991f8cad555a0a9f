// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/best.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>

#include <swapmm/plan/best_plan.hpp>
#include <swapmm/plan/best_search.hpp>
#include <swapmm/plan/schedule.hpp>

namespace swapmm {
namespace {

/// The same machine with links of a part of their bandwidth.
Machine with_slower_links(Machine machine, double part) {
  for (Link* const link : {&machine.h2d, &machine.d2h}) {
    const double slower = static_cast<double>(link->bytes_per_second) * part;
    link->bytes_per_second = std::max<std::uint64_t>(1, static_cast<std::uint64_t>(slower));
  }
  return machine;
}

/// Looks for plans that are as fast as the best one, and faster where links are slower.
class SparedLinks {
 public:
  /// Plans up to `fast_enough` are as fast. `options` are those of a search for slower links.
  SparedLinks(const PlanningCase& planning, const PlanningOptions& options, std::chrono::nanoseconds fast_enough,
              BestPlan& best)
      : planning_(planning), options_(options), fast_enough_(fast_enough), best_(best) {}

  void run() {
    constexpr double parts[] = {0.8, 0.5};
    for (const double part : parts) {
      if (!offer_for(with_slower_links(planning_.machine, part))) return;
    }
  }

 private:
  /// False where the best plan stalls there, and no other that does less is as fast.
  bool offer_for(const Machine& slower) {
    if (!check_machine(slower)) return false;
    const Result<PlanningCase> slower_case = make_planning_case(planning_.trace, slower);
    if (!slower_case) return false;
    Plan start = best_.plan();
    start.machine = slower;
    BestPlan best_of_slower(*slower_case, std::move(start));
    const Simulation before = best_of_slower.simulation();
    if (before.iteration <= before.compute) return true;
    BestSearch(*slower_case, options_, best_of_slower).run({}, 1);
    if (best_of_slower.simulation().iteration == before.iteration) return false;
    Plan found = std::move(best_of_slower).take();
    found.machine = planning_.machine;
    return best_.offer_within(fast_enough_, std::move(found));
  }

  const PlanningCase& planning_;
  const PlanningOptions& options_;
  std::chrono::nanoseconds fast_enough_;
  BestPlan& best_;
};

void spare_links(const PlanningCase& planning, const PlanningOptions& options, const BestSearch& search,
                 BestPlan& best) {
  if (!search.is_near_bound() || search.takes_long()) return;
  PlanningOptions of_slower;  // whoever asks how far the search is wants to hear of this machine
  const PlanningProgress progress{best.simulation().iteration, search.lower_bound()};
  if (options.go_on) of_slower.go_on = [&](const PlanningProgress&) { return options.go_on(progress); };
  if (options.go_on && !options.go_on(progress)) return;
  SparedLinks(planning, of_slower, search.near_bound(), best).run();
}

}  // namespace

Result<ProvenPlan> build_best_plan(const PlanningCase& planning, const PlanningOptions& options,
                                   std::span<const NamedPlanner> others) {
  Result<Plan> first = build_per_operation_plan(planning, Pace::one_at_a_time, "best");
  if (!first) return first.problem();
  BestPlan best(planning, *std::move(first));
  BestSearch search(planning, options, best);
  search.run(others, options.go_on ? std::optional<int>{} : search.rounds_without_clock());
  spare_links(planning, options, search, best);
  return ProvenPlan{std::move(best).take(), search.lower_bound()};
}

}  // namespace swapmm
