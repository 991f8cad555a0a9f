// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/excess_overlap/excess_overlap.hpp>

#include <algorithm>
#include <functional>
#include <vector>

#include <swapmm/plan/baselines/on_demand.hpp>
#include <swapmm/plan/excess_overlap/overlap_stays.hpp>
#include <swapmm/plan/excess_overlap/overlap_trades.hpp>
#include <swapmm/plan/problem/overlap_ledger.hpp>
#include <swapmm/plan/problem/share.hpp>
#include <swapmm/plan/schedule/best_plan.hpp>
#include <swapmm/plan/schedule/fit.hpp>
#include <swapmm/plan/schedule/known_stalls.hpp>

namespace swapmm::planning {
namespace {

/// Makes the stays of one choice, with fewer bytes each time until they pack. Returns true if that is the best plan so
/// far.
bool try_choice(OverlapLedger& ledger, double stay_share, const ExcessOverlapOptions& options, std::string_view planner,
                BestPlan& best, OverlapDecision& decision, std::vector<std::vector<Stay>>& tried,
                const std::function<bool()>& keep_going) {
  const PlanningCase& planning = ledger.planning;
  std::uint64_t bytes = planning.budget;
  for (int attempt = 0; attempt < options.fitting.attempts && keep_going(); ++attempt) {
    const OverlapChoice choice{.bytes = bytes, .stay_bytes = share_of(bytes, stay_share)};
    std::vector<Stay> stays = overlap_stays(ledger, choice, options.hiding);
    if (std::find(tried.begin(), tried.end(), stays) != tried.end()) return false;
    Result<BuiltPlan> built = build_plan(planning, {Pace::overlapped, stays}, planner, options.fitting.packing);
    if (!built) return false;
    tried.push_back(std::move(stays));
    if (built->plan) {
      if (!best.offer(*std::move(built->plan))) return false;
      decision = {bytes, decided_stays(ledger)};
      return true;
    }
    const std::uint64_t asked = bytes;
    bytes = shrink_to_fit(planning, asked, built->height, attempt, options.fitting);
    if (bytes >= asked) return false;
  }
  return false;
}

/// To be called if no choice packs: Belady's stays hold only the room in use, and so pack more easily.
void offer_belady(const PlanningCase& planning, const OnDemandOptions& options, std::string_view planner,
                  BestPlan& best) {
  Result<Plan> plan = build_on_demand_plan(planning, planner, Pace::overlapped, Victim::used_furthest_ahead, options);
  if (plan) best.offer(*std::move(plan));
}

}  // namespace

Result<Plan> build_excess_overlap_plan(const PlanningCase& planning, std::string_view planner,
                                       const ExcessOverlapOptions& options, const PlanningOptions& limits) {
  Result<Plan> start = build_per_operation_plan(planning, Pace::one_at_a_time, planner);
  if (!start) return start;
  BestPlan best(planning, *std::move(start));

  OverlapLedger ledger(planning);
  std::vector<std::vector<Stay>> tried;
  OverlapDecision decision;
  const std::function<bool()> keep_going = [&] {
    return !limits.go_on || limits.go_on({best.simulation().iteration, best.simulation().compute});
  };
  const auto is_without_stall = [&] { return best.simulation().iteration == best.simulation().compute; };
  for (int round = 0; round < options.rounds; ++round) {
    bool is_better = false;
    for (const double share : options.stay_shares) {
      is_better = try_choice(ledger, share, options, planner, best, decision, tried, keep_going) || is_better;
      // With the first share, the fewest bytes move, so the others have nothing to gain.
      if (share == options.stay_shares.front() && is_better && is_without_stall()) break;
    }
    if (round == 0 && !is_better && options.belady_if_nothing_packs) {
      offer_belady(planning, options.belady, planner, best);
    }
    if (!is_better || is_without_stall() || !keep_going()) break;
    count_stalls(best.simulation(), ledger);
  }
  trade_stays(ledger, planner, decision, best, keep_going, options.trades, options.hiding);
  return std::move(best).take();
}

}  // namespace swapmm::planning
