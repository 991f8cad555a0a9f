// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/recompute.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include <swapmm/plan/bound.hpp>
#include <swapmm/plan/planners.hpp>
#include <swapmm/plan/planners/before_best.hpp>
#include <swapmm/plan/recompute/bound.hpp>
#include <swapmm/plan/recompute/choices.hpp>
#include <swapmm/plan/recompute/replays.hpp>
#include <swapmm/plan/schedule/schedule.hpp>
#include <swapmm/plan/search/best.hpp>

namespace swapmm::planning {
namespace {

using std::chrono::nanoseconds;

/// Replays that were looked at.
struct Candidate {
  std::vector<Replay> replays;
  nanoseconds relaxed{0};  ///< a bound for plans with exactly these replays, for a comparison
};

class RecomputeSearch {
 public:
  RecomputeSearch(const Trace& trace, const PlanningCase& planning, const RecomputeOptions& options,
                  const PlanningOptions& limits)
      : trace_(trace),
        planning_(planning),
        options_(options),
        limits_(limits),
        history_(trace),
        choice_(trace, history_, planning) {}

  [[nodiscard]] Result<RecomputingPlan> run() {
    look_at({});
    look_at_prices();
    leave_out();
    return plan_best();
  }

 private:
  [[nodiscard]] bool go_on() const { return !limits_.go_on || limits_.go_on(progress_); }

  /// Rates the replays, unless they were looked at before. Returns the rating.
  nanoseconds look_at(std::vector<Replay> replays) {
    for (const Candidate& known : candidates_) {
      if (known.replays == replays) return known.relaxed;
    }
    const nanoseconds rating = relaxed(replays);
    candidates_.push_back({std::move(replays), rating});
    return rating;
  }

  [[nodiscard]] nanoseconds relaxed(const std::vector<Replay>& replays) const {
    const Result<ReplayedTrace> replayed = with_replays(trace_, history_, replays);
    if (!replayed) return nanoseconds::max();
    const Result<nanoseconds> bound = lower_bound(replayed->trace, planning_.machine, options_.rating);
    return bound ? *bound : nanoseconds::max();
  }

  nanoseconds look_at_price(double price) { return look_at(choice_.choose({.copy_price = price})); }

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

  /// Leaves out replays of the best choice that gain nothing: many in a row at first, then fewer.
  void leave_out() {
    const auto best = std::ranges::min_element(candidates_, {}, &Candidate::relaxed);
    Candidate kept{best->replays, best->relaxed};
    int tries = 0;
    std::size_t length = (kept.replays.size() + 3) / 4;
    for (std::size_t first = 0; length > 0 && tries < options_.omissions && go_on(); ++tries) {
      if (first >= kept.replays.size()) {
        first = 0;
        length /= 2;
        if (kept.replays.empty()) break;
        continue;
      }
      std::vector<Replay> fewer = kept.replays;
      const auto from = fewer.begin() + static_cast<std::ptrdiff_t>(first);
      const std::size_t end = std::min(first + length, fewer.size());
      fewer.erase(from, fewer.begin() + static_cast<std::ptrdiff_t>(end));
      const nanoseconds rating = relaxed(fewer);
      if (rating <= kept.relaxed) {
        kept = {std::move(fewer), rating};
      } else {
        first += length;
      }
    }
    if (kept.replays != best->replays) candidates_.push_back(std::move(kept));
  }

  /// Runs `best` for the best ratings and for no replays, in turns.
  [[nodiscard]] Result<RecomputingPlan> plan_best() {
    std::ranges::stable_sort(candidates_, {}, &Candidate::relaxed);
    int with_replays = 0;
    for (Candidate& candidate : candidates_) {
      if (!candidate.replays.empty() && ++with_replays >= std::max(options_.plans, 2)) continue;
      runs_.push_back(std::make_unique<TurnOfBest>(std::move(candidate)));
    }
    take_turns();
    if (fastest_ == nullptr) return problem_;
    return finish(*fastest_);
  }

  /// One of the choices, and the run of `best` for it.
  struct TurnOfBest {
    explicit TurnOfBest(Candidate&& candidate) : choice(std::move(candidate)) {}
    Candidate choice;
    Trace trace;
    std::optional<PlanningCase> planning;
    std::optional<BestRun> run;
  };

  void take_turns() {
    for (int round = 0; !runs_.empty(); ++round) {
      bool runs_on = false;
      for (const auto& turn : runs_) {
        // Some plan is there even if there is no time.
        if (fastest_ != nullptr && !go_on()) return;
        if (is_behind(*turn)) continue;
        if (!turn->run && !begin(*turn)) continue;
        if (turn->run->is_done() || (!limits_.go_on && round >= turn->run->rounds_without_clock())) continue;
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
    Result<ReplayedTrace> replayed = with_replays(trace_, history_, turn.choice.replays);
    if (!replayed) return false;
    turn.trace = std::move(replayed->trace);
    Result<PlanningCase> planning = make_planning_case(turn.trace, planning_.machine);
    if (!planning) return false;
    turn.planning.emplace(*std::move(planning));
    Result<Plan> first = first_plan_of_best(*turn.planning);
    if (!first) {
      problem_ = first.problem();
      return false;
    }
    std::span<const NamedPlanner> others;
    if (options_.best.others.on) others = planners_before_best();
    turn.run.emplace(*turn.planning, options_.best, limits_, others, *std::move(first));
    if (fastest_ == nullptr) fastest_ = &turn;
    return true;
  }

  [[nodiscard]] RecomputingPlan finish(TurnOfBest& turn) {
    ProvenPlan proven = turn.run->finish();
    proven.plan.planner = "best";
    finish_plan(*turn.planning, proven.plan, proven.lower_bound);
    RecomputingPlan made{std::move(turn.choice.replays), std::move(proven.plan)};
    made.plan.predicted.lower_bound =
        std::min(recomputing_bound(trace_, history_, planning_), made.plan.predicted.iteration);
    return made;
  }

  const Trace& trace_;
  const PlanningCase& planning_;
  const RecomputeOptions& options_;
  const PlanningOptions& limits_;
  ValueHistory history_;
  ReplayChoice choice_;
  std::vector<Candidate> candidates_;
  std::vector<std::unique_ptr<TurnOfBest>> runs_;
  TurnOfBest* fastest_ = nullptr;
  PlanningProgress progress_;
  Problem problem_{"no time for a plan"};
};

}  // namespace
}  // namespace swapmm::planning

namespace swapmm {

Result<RecomputingPlan> plan_with_replays(const Trace& trace, const Machine& machine, const PlanningOptions& limits,
                                          const RecomputeOptions& options) {
  const Trace plain = planning::without_replayable(trace);
  const bool may =
      limits.recompute && trace.lingering.empty() && std::ranges::any_of(trace.operations, &TraceOperation::replayable);
  if (!may) {
    Result<Plan> plan = best_planner(options.best).make(plain, machine, limits);
    if (!plan) return plan.problem();
    return RecomputingPlan{{}, *std::move(plan)};
  }
  const Result<planning::PlanningCase> planning = planning::make_planning_case(plain, machine);
  if (!planning) return planning.problem();
  return planning::RecomputeSearch(trace, *planning, options, limits).run();
}

}  // namespace swapmm
