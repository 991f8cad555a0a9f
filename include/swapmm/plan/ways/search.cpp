// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/ways.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <swapmm/plan/planners.hpp>
#include <swapmm/plan/schedule/schedule.hpp>
#include <swapmm/plan/ways/bound.hpp>
#include <swapmm/plan/ways/candidate.hpp>
#include <swapmm/plan/ways/choices.hpp>
#include <swapmm/plan/ways/history.hpp>
#include <swapmm/plan/ways/pieces.hpp>
#include <swapmm/plan/ways/refinement.hpp>
#include <swapmm/plan/ways/turn.hpp>
#include <swapmm/plan/ways/units.hpp>
#include <swapmm/plan/ways/written.hpp>

namespace swapmm::planning {
namespace {

using std::chrono::nanoseconds;

class WaysSearch {
 public:
  /// `trace` may be divided; `whole` is then the trace that is not, without other ways.
  WaysSearch(const Trace& trace, const Trace* whole, const PlanningCase& planning, const WaysOptions& options,
             const PlanningOptions& limits)
      : trace_(trace),
        whole_(whole),
        planning_(planning),
        options_(options),
        limits_(limits),
        history_(trace),
        choice_(trace, history_, planning) {
    if (!limits.go_on) return;
    // A run knows its own plans alone, and a bound for its choice of ways.
    limits_.go_on = [this, &limits, compute = compute_time(trace)](const PlanningProgress& run) {
      if (run.iteration.count() > 0 && (fastest_time_.count() == 0 || run.iteration < fastest_time_)) {
        fastest_time_ = run.iteration;
      }
      return limits.go_on({fastest_time_, compute});
    };
  }

  WaysSearch(const WaysSearch&) = delete;
  WaysSearch& operator=(const WaysSearch&) = delete;

  /// A plan for the trace with its ways, and whether it is for the whole one.
  struct Found {
    PlanWithWays plan;
    bool is_whole = false;
  };

  [[nodiscard]] Result<Found> run() {
    look_at({});
    look_at_prices();
    look_at_units();
    leave_out();
    refine();
    return plan_best();
  }

 private:
  /// Whether it ends when it is told to, and not before.
  [[nodiscard]] bool is_by_clock() const { return limits_.go_on && !options_.best.rounds_with_clock; }
  [[nodiscard]] bool go_on() const { return !limits_.go_on || limits_.go_on({}); }

  /// Rates the ways, unless they were looked at before. Returns the rating.
  nanoseconds look_at(WaysBack ways) {
    for (const Candidate& known : candidates_) {
      if (known.ways == ways) return known.relaxed;
    }
    const nanoseconds rating = rate(ways);
    candidates_.push_back({std::move(ways), rating});
    return rating;
  }

  [[nodiscard]] nanoseconds rate(const WaysBack& ways) const {
    return relaxed_time(trace_, history_, ways, planning_.machine, options_.rating);
  }

  nanoseconds look_at_price(double price) {
    const nanoseconds rating = look_at(choice_.choose({.copy_price = price}));
    if (!best_price_ || rating < best_price_->second) best_price_ = {price, rating};
    return rating;
  }

  /// Tries prices over the whole range, then between the best ones.
  void look_at_prices() {
    const std::vector<double> prices = choice_.prices();
    if (prices.empty() || options_.prices < 2) return;
    if (!(prices.back() > 0)) return void(look_at_price(1));  // what may run again takes no time
    // A chain costs more than its last operation.
    const double least = std::max(prices.front(), prices.back() * 1e-6) / 2;
    const double most = prices.back() * options_.highest_price;
    std::vector<std::pair<double, nanoseconds>> tried;
    for (int i = 0; i < options_.prices && go_on(); ++i) {
      const double price = least * std::pow(most / least, static_cast<double>(i) / (options_.prices - 1));
      tried.emplace_back(price, look_at_price(price));
    }
    for (int i = 0; i < options_.refinements && go_on() && tried.size() > 2; ++i) {
      const auto best = std::ranges::min_element(tried, {}, &std::pair<double, nanoseconds>::second);
      const auto at = best == tried.begin() ? best + 1 : best == tried.end() - 1 ? best - 1 : best;
      const auto after = i % 2 == 0 ? at : at + 1;  // the new price is between the two before and at it
      const double price = std::sqrt((after - 1)->first * after->first);
      tried.insert(after, {price, look_at_price(price)});
    }
  }

  /// Prices judge each value alone, and a long chain is made from its beginning. Units of operations have checkpoints.
  void look_at_units() {
    if (options_.prices < 2) return;
    UnitChoice(trace_, history_, planning_).for_each(options_.units, [&](std::vector<Replay> replays) {
      if (!go_on()) return false;
      look_at({std::move(replays), {}, {}});
      return true;
    });
  }

  [[nodiscard]] const Candidate& best_rated() const {
    return *std::ranges::min_element(candidates_, {}, &Candidate::relaxed);
  }

  /// Leaves out ways of the best choice that gain nothing.
  void leave_out() {
    Candidate kept = best_rated();
    int tries = 0;
    leave_ways_out(
        kept.ways, [&] { return tries++ < options_.omissions && go_on(); },
        [&](const WaysBack& fewer) {
          const nanoseconds rating = rate(fewer);
          if (rating > kept.relaxed) return false;
          kept = {fewer, rating};
          return true;
        });
    if (kept.ways != best_rated().ways) candidates_.push_back(std::move(kept));
  }

  /// Improves the best choice by plans, and begins the runs with it.
  void refine() {
    if (!best_price_) return;
    WayRefinement refinement(trace_, history_, choice_, planning_, options_, limits_);
    std::optional<RefinedWays> refined = refinement.run(best_rated(), best_price_->first);
    if (!refined) return;
    std::erase_if(candidates_, [&](const Candidate& known) { return known.ways == refined->choice.ways; });
    runs_.push_back(std::make_unique<TurnOfBest>(std::move(refined->choice)));
    runs_.back()->first = std::move(refined->plan);
  }

  /// Runs `best` for the refined choice, or the one with the best rating, and for copies alone, in turns.
  [[nodiscard]] Result<Found> plan_best() {
    std::ranges::stable_sort(candidates_, {}, &Candidate::relaxed);
    int with_ways = !runs_.empty() && !runs_.front()->choice.ways.empty() ? 1 : 0;  // the refined one
    for (Candidate& candidate : candidates_) {
      if (!candidate.ways.empty() && ++with_ways >= std::max(options_.plans, 2)) continue;
      runs_.push_back(std::make_unique<TurnOfBest>(std::move(candidate)));
    }
    if (whole_ != nullptr) {
      runs_.push_back(std::make_unique<TurnOfBest>(Candidate{}));
      runs_.back()->is_whole = true;
    }
    take_turns();
    if (fastest_ == nullptr) return problem_;
    return finish(*fastest_);
  }

  void take_turns() {
    for (int round = 0; !runs_.empty(); ++round) {
      bool runs_on = false;
      for (const auto& turn : runs_) {
        // Some plan is there even if there is no time.
        if (fastest_ != nullptr && !go_on()) return;
        if (is_behind(*turn)) continue;
        // The first round is for plans that are as fast as can be, too: it looks for one that moves fewer bytes.
        if (turn->run) {
          if (turn->run->is_done() || (!is_by_clock() && round >= turn->run->rounds_without_clock())) continue;
        } else if (!begin(*turn)) {
          continue;
        }
        turn->run->run(1);
        runs_on = true;
        if (fastest_ == nullptr || turn->run->reached() < fastest_->run->reached()) fastest_ = turn.get();
      }
      if (!runs_on) return;
    }
  }

  /// Whether its plan cannot become, or is unlikely to become, the fastest one.
  [[nodiscard]] bool is_behind(const TurnOfBest& turn) const {
    if (fastest_ == nullptr || fastest_ == &turn) return false;
    const nanoseconds best = fastest_->run->reached();
    if (turn.choice.relaxed >= best) return true;
    return turn.run && static_cast<double>(turn.run->reached().count()) >
                           (1 + options_.most_behind) * static_cast<double>(best.count());
  }

  bool begin(TurnOfBest& turn) {
    Result<WrittenTrace> written = turn.is_whole ? Result<WrittenTrace>(WrittenTrace{*whole_, {}, {}, {}})
                                                 : with_ways(trace_, history_, turn.choice.ways);
    if (!written) return false;
    if (const auto problem = turn.begin(*std::move(written), planning_.machine, options_.best, limits_)) {
      problem_ = *problem;
      return false;
    }
    if (fastest_ == nullptr) fastest_ = &turn;
    return true;
  }

  [[nodiscard]] Found finish(TurnOfBest& turn) {
    ProvenPlan proven = turn.run->finish();
    proven.plan.planner = "best";
    finish_plan(*turn.planning, proven.plan, proven.lower_bound);
    Found found{{std::move(turn.choice.ways), std::move(proven.plan)}, turn.is_whole};
    Prediction& predicted = found.plan.plan.predicted;
    const BoundFor plans = whole_ == nullptr ? BoundFor::pieces : BoundFor::tensors;
    predicted.lower_bound =
        std::min(ways_bound(trace_, history_, planning_, plans, options_.best.bound), predicted.iteration);
    return found;
  }

  const Trace& trace_;
  const Trace* whole_;
  const PlanningCase& planning_;
  const WaysOptions& options_;
  PlanningOptions limits_;       // tell of the fastest plan of all
  nanoseconds fastest_time_{0};  // that was told of; 0: none
  ValueHistory history_;
  WayChoice choice_;
  std::vector<Candidate> candidates_;
  std::optional<std::pair<double, nanoseconds>> best_price_;  // whose choice has the best rating, and that
  std::vector<std::unique_ptr<TurnOfBest>> runs_;
  TurnOfBest* fastest_ = nullptr;
  Problem problem_{"no time for a plan"};
};

}  // namespace
}  // namespace swapmm::planning

namespace swapmm {

Result<PlanWithWays> plan_with_ways(const Trace& trace, const Machine& machine, const PlanningOptions& limits,
                                    const WaysOptions& options) {
  using namespace planning;  // NOLINT(*-build-using-namespace)
  if (!trace.engines.empty()) return Problem{"operations name engines"};
  const Result<DividedTrace> whole = with_pieces(without_ways(trace), {});
  if (!whole) return whole.problem();
  const Trace allowed = only_ways(trace, limits.ways);
  const std::vector<TensorPieces> pieces =
      limits.ways.pieces ? possible_pieces(allowed, machine) : std::vector<TensorPieces>{};
  if (pieces.empty() && !has_ways(allowed)) {
    Result<Plan> plan = best_planner(options.best).make(whole->trace, machine, limits);
    if (!plan) return plan.problem();
    return PlanWithWays{{}, *std::move(plan)};
  }
  const Result<DividedTrace> divided = with_pieces(allowed, pieces);
  if (!divided) return divided.problem();
  const Trace plain = without_ways(divided->trace);
  const Result<PlanningCase> planning = make_planning_case(plain, machine);
  if (!planning) {
    if (pieces.empty()) return planning.problem();
    // Pieces need more room, because each begins at a multiple of the alignment.
    PlanningOptions without_pieces = limits;
    without_pieces.ways.pieces = false;
    return plan_with_ways(trace, machine, without_pieces, options);
  }
  WaysSearch search(divided->trace, pieces.empty() ? nullptr : &whole->trace, *planning, options, limits);
  Result<WaysSearch::Found> found = search.run();
  if (!found) return found.problem();
  PlanWithWays& made = found->plan;
  for (Coding& coding : made.ways.codings) coding.tensor = divided->parts[index(coding.tensor)].tensor;
  if (!found->is_whole) made.ways.pieces = pieces;
  return std::move(made);
}

}  // namespace swapmm
