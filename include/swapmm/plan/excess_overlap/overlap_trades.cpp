// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/excess_overlap/overlap_trades.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include <swapmm/plan/excess_overlap/overlap_stays.hpp>
#include <swapmm/plan/schedule/schedule.hpp>

namespace swapmm::planning {
namespace {

/// A decision that packs, and its result.
struct Outcome {
  OverlapDecision decision;
  Plan plan;
  Simulation simulation;
};

class Trades {
 public:
  Trades(OverlapLedger& ledger, std::string_view planner, const TradeOptions& options, const HidingOptions& hiding)
      : ledger_(ledger), planner_(planner), options_(options), hiding_(hiding) {
    order_.resize(ledger.absences.size());
    std::iota(order_.begin(), order_.end(), 0U);
  }

  /// Makes a plan. Returns nothing if it does not pack.
  std::optional<Outcome> decide(const OverlapChoice& choice) {
    const PlanningCase& planning = ledger_.planning;
    std::vector<Stay> stays = overlap_stays(ledger_, choice, hiding_);
    Result<BuiltPlan> built = build_plan(planning, {Pace::overlapped, std::move(stays)}, planner_, options_.packing);
    if (!built || !built->plan) return std::nullopt;
    Outcome outcome{{choice.bytes, decided_stays(ledger_)}, *std::move(built->plan), {}};
    outcome.simulation = simulate(planning.trace, outcome.plan);
    return outcome;
  }

  std::optional<Outcome> trade(const OverlapDecision& now) {
    std::vector<std::uint32_t> staying;
    for (std::uint32_t i = 0; i < now.stays.size(); ++i) {
      if (now.stays[i]) staying.push_back(i);
    }
    if (staying.empty()) return std::nullopt;
    shuffle();
    const std::uint64_t bytes = below(2) == 0 ? now.bytes : ledger_.planning.budget;
    std::vector<bool> decided = now.stays;
    for (std::size_t also = below(3); also > 0; --also) decided[staying[below(staying.size())]] = false;
    return decide({.bytes = bytes,
                   .stay_bytes = below(2) == 0 ? bytes : 0,
                   .decided = std::move(decided),
                   .goes_out = staying[below(staying.size())],
                   .order = order_});
  }

 private:
  // std::shuffle and the distributions give different results in different standard libraries.
  std::size_t below(std::size_t count) { return static_cast<std::size_t>(random_() % count); }
  void shuffle() {
    for (std::size_t i = order_.size(); i > 1; --i) std::swap(order_[i - 1], order_[below(i)]);
  }

  OverlapLedger& ledger_;
  std::string_view planner_;
  const TradeOptions& options_;
  const HidingOptions& hiding_;
  std::mt19937_64 random_{1};
  std::vector<std::uint32_t> order_;
};

bool nobody_goes_out(const OverlapLedger& ledger) {
  return std::all_of(ledger.absences.begin(), ledger.absences.end(),
                     [](const Absence& absence) { return absence.stays || absence.is_arrival; });
}

}  // namespace

void trade_stays(OverlapLedger& ledger, std::string_view planner, const OverlapDecision& start, BestPlan& best,
                 const std::function<bool()>& keep_going, const TradeOptions& options, const HidingOptions& hiding) {
  const std::size_t absences = ledger.absences.size();
  if (absences == 0 || options.most_tries == 0 || !keep_going()) return;
  Trades trades(ledger, planner, options, hiding);
  const std::uint64_t bytes = start.bytes == 0 ? ledger.planning.budget : start.bytes;
  std::optional<Outcome> now = trades.decide({.bytes = bytes, .stay_bytes = 0, .decided = start.stays});
  if (!now || nobody_goes_out(ledger)) return;
  const std::size_t tries = std::min(std::max(options.work / absences, options.least_tries), options.most_tries);
  const std::size_t patience = options.patience * absences;  // tries without a gain
  std::size_t last_gain = 0;
  for (std::size_t i = 0; i < tries && i - last_gain <= patience && keep_going(); ++i) {
    std::optional<Outcome> next = trades.trade(now->decision);
    if (!next || BestPlan::rank(next->simulation) > BestPlan::rank(now->simulation)) continue;
    now = std::move(next);
    if (best.offer(now->plan, now->simulation)) last_gain = i;
  }
}

}  // namespace swapmm::planning
