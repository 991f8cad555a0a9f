// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/ways.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include <swapmm/plan/planners.hpp>
#include <swapmm/plan/problem/part_of_time.hpp>
#include <swapmm/plan/schedule/schedule.hpp>
#include <swapmm/plan/ways/bound.hpp>
#include <swapmm/plan/ways/candidate.hpp>
#include <swapmm/plan/ways/choices.hpp>
#include <swapmm/plan/ways/program/history.hpp>
#include <swapmm/plan/ways/program/pieces.hpp>
#include <swapmm/plan/ways/program/written.hpp>
#include <swapmm/plan/ways/refinement.hpp>
#include <swapmm/plan/ways/turn.hpp>
#include <swapmm/plan/ways/units.hpp>

namespace swapmm::planning {
namespace {

using std::chrono::nanoseconds;

/// The same program in another division.
struct OtherDivision {
  const DividedTrace& program;
  const PlanningCase& planning;  ///< without ways
  bool is_finer = false;  ///< tensors are divided here. Else they are divided in the program itself, and not here
};

/// Traces of up to this many operations. Ways are chosen in no time there. The search is not exhaustive, and may end
/// with a slower plan if it may use more ways: it is repeated with fewer.
constexpr std::size_t small_trace = 200;

class WaysSearch {
 public:
  /// `other`: null if no tensor can be divided, or if one division alone is possible.
  WaysSearch(const DividedTrace& program, const PlanningCase& planning, const OtherDivision* other,
             const WaysOptions& options, const PlanningOptions& limits)
      : program_(program),
        trace_(program.trace),
        planning_(planning),
        other_(other),
        options_(options),
        limits_(limits),
        history_(trace_),
        choice_(trace_, history_, planning),
        rating_(trace_, history_, planning.machine, options) {
    if (other != nullptr) other_history_.emplace(other->program.trace);
    if (!limits.go_on) return;
    // A run knows its own plans alone, and a bound for its choice of ways.
    limits_.go_on = [this, &limits, compute = compute_time(trace_)](const PlanningProgress& run) {
      if (run.iteration.count() > 0 && (fastest_time_.count() == 0 || run.iteration < fastest_time_)) {
        fastest_time_ = run.iteration;
      }
      // The bound must not begin when no time is left.
      const bool is_early = fastest_ != nullptr && !bound_;
      const double most = chooses_ ? is_early ? part_before_bound : 1 : part_of_copies;
      return limits.go_on({fastest_time_, compute, std::min(run.part, most)});
    };
  }

  WaysSearch(const WaysSearch&) = delete;
  WaysSearch& operator=(const WaysSearch&) = delete;

  /// A plan with its ways, and whether it is for the other division. WaysBack::pieces is empty.
  struct Found {
    PlanWithWays plan;
    bool is_other = false;
  };

  [[nodiscard]] Result<Found> run() {
    look_at(WaysBack{});
    if (limits_.go_on && options_.copies_first && trace_.operations.size() > small_trace) begin_with_copies();
    chooses_ = true;
    look_at_prices();
    look_at_units();
    if (!refine()) leave_out();
    return plan_best();
  }

 private:
  /// Whether it ends when it is told to, and not before.
  [[nodiscard]] bool is_by_clock() const { return planning::is_by_clock(limits_); }
  [[nodiscard]] bool go_on() const { return !limits_.go_on || limits_.go_on({}); }

  /// Rates the ways quickly, unless they were looked at before. Returns their position in candidates_.
  std::size_t look_at(WaysBack ways) {
    const auto known = std::ranges::find(candidates_, ways, &Candidate::ways);
    if (known != candidates_.end()) return static_cast<std::size_t>(known - candidates_.begin());
    const nanoseconds rating = rating_.quick(ways);
    candidates_.push_back({std::move(ways), rating, false});
    return candidates_.size() - 1;
  }

  /// In large traces choices take seconds. If there is a clock, a plan with copies alone comes first, in this part of
  /// the time.
  static constexpr double part_of_copies = 0.35;
  /// The bound takes up to a second.
  static constexpr double part_before_bound = 0.7;

  void begin_with_copies() {
    auto turn = std::make_unique<TurnOfBest>(Candidate(candidates_.front()));
    if (!begin(*turn)) return;
    copies_ = std::move(turn);
    copies_->run->run(1);
    copies_->has_run = true;
  }

  struct Tried {
    WayCriteria criteria;
    std::size_t candidate = 0;
  };

  [[nodiscard]] Tried look_at(const WayCriteria& criteria) { return {criteria, look_at(choice_.choose(criteria))}; }
  [[nodiscard]] Tried look_at_price(double price) { return look_at(WayCriteria{.copy_price = price}); }

  /// Ratings that are not close are lower.
  [[nodiscard]] static std::pair<bool, nanoseconds> order_of(const Candidate& candidate) {
    return {!candidate.is_close, candidate.relaxed};
  }

  /// Which of these candidates has the best rating. The best ones are rated closely, until `left` of all such ratings,
  /// as a part, are left for later: what has none then cannot be chosen.
  [[nodiscard]] std::size_t best_of(const std::vector<std::size_t>& some, double left) {
    const auto kept = static_cast<std::size_t>(left * static_cast<double>(most_close_));
    const auto relaxed = [this](std::size_t i) { return candidates_[i].relaxed; };
    for (;;) {
      const std::size_t best = *std::ranges::min_element(some, {}, relaxed);
      Candidate& candidate = candidates_[best];
      if (candidate.is_close) return best;
      if (rating_.close_left() <= kept || !go_on()) break;
      candidate.relaxed = rating_.close(candidate.ways, candidate.relaxed);
      candidate.is_close = true;
    }
    return *std::ranges::min_element(some, {}, [this](std::size_t i) { return order_of(candidates_[i]); });
  }

  [[nodiscard]] std::size_t best_of(const std::vector<Tried>& tried, double left) {
    std::vector<std::size_t> some;
    for (const Tried& one : tried) some.push_back(one.candidate);
    const std::size_t best = best_of(some, left);
    return static_cast<std::size_t>(std::ranges::find(some, best) - some.begin());
  }

  /// Tries prices over the whole range, then between the best ones.
  void look_at_prices() {
    const std::vector<double> prices = choice_.prices();
    if (prices.empty() || options_.prices < 2) return;
    if (!(prices.back() > 0)) {  // what may run again takes no time
      best_criteria_ = look_at_price(1).criteria;
      return;
    }
    // A chain costs more than its last operation.
    const double least = std::max(prices.front(), prices.back() * 1e-6) / 2;
    const double most = prices.back() * options_.highest_price;
    std::vector<Tried> tried;
    for (int i = 0; i < options_.prices && (tried.empty() || go_on()); ++i) {
      tried.push_back(look_at_price(least * std::pow(most / least, static_cast<double>(i) / (options_.prices - 1))));
    }
    std::size_t best = best_of(tried, 0.6);
    for (int i = 0; i < options_.refinements && go_on() && tried.size() > 2; ++i) {
      const std::size_t at = best == 0 ? 1 : best == tried.size() - 1 ? best - 1 : best;
      const std::size_t after = i % 2 == 0 ? at : at + 1;  // the new price is between the two before and at it
      const double price = std::sqrt(tried[after - 1].criteria.copy_price * tried[after].criteria.copy_price);
      tried.insert(tried.begin() + static_cast<std::ptrdiff_t>(after), look_at_price(price));
      best = best_of(tried, 0.4);
    }
    look_at_tilts(tried[best]);
  }

  /// At some times the links have more to do than at others.
  void look_at_tilts(const Tried& flat) {
    std::vector<Tried> tried{flat};
    for (const double tilt : options_.tilts) {
      for (const double factor : {1.0, 0.6, 1.6}) {
        if (!go_on()) break;
        tried.push_back(look_at(WayCriteria{.copy_price = factor * flat.criteria.copy_price, .tilt = tilt}));
      }
    }
    look_at_one_way(tried, flat.criteria.copy_price);
    best_criteria_ = tried[best_of(tried, 0.2)].criteria;
  }

  /// Where there are replays and codings, each alone: they may be in each other's way.
  void look_at_one_way(std::vector<Tried>& tried, double price) {
    const Ways there = ways_in(trace_);
    if (!there.recompute || !there.compress) return;
    for (const bool replays : {true, false}) {
      for (const double factor : {1.0, 0.4, 2.5}) {
        if (!go_on()) return;
        tried.push_back(look_at(WayCriteria{.copy_price = factor * price, .replays = replays, .codings = !replays}));
      }
    }
  }

  /// Prices judge each value alone, and a long chain is made from its beginning. Units of operations have checkpoints.
  void look_at_units() {
    if (options_.prices < 2) return;
    UnitChoice(trace_, history_, planning_).for_each(options_.units, [&](std::vector<Replay> replays) {
      if (!go_on()) return false;
      look_at(WaysBack{std::move(replays), {}, {}});
      return true;
    });
  }

  [[nodiscard]] Candidate& best_rated() {
    std::vector<std::size_t> all(candidates_.size());
    std::iota(all.begin(), all.end(), std::size_t{0});
    return candidates_[best_of(all, 0)];
  }

  /// Leaves out ways of the best choice that gain nothing, by quick ratings.
  void leave_out() {
    if (!go_on()) return;
    Candidate& best = best_rated();
    nanoseconds reached = rating_.quick(best.ways);
    int tries = 0;
    leave_ways_out(
        best.ways, [&] { return tries++ < options_.omissions && go_on(); },
        [&](const WaysBack& fewer) {
          const nanoseconds rating = rating_.quick(fewer);
          if (rating > reached) return false;
          reached = rating;
          best.ways = fewer;  // as good as before
          return true;
        });
  }

  /// Improves the best choice by plans, and begins the runs with it. Returns false if there is none.
  bool refine() {
    if (!best_criteria_) return false;
    WayRefinement refinement(trace_, history_, choice_, planning_, rating_, options_, limits_);
    std::optional<RefinedWays> refined = refinement.run(best_rated(), *best_criteria_, candidates_);
    if (!refined) return false;
    std::erase_if(candidates_, [&](const Candidate& known) { return known.ways == refined->choice.ways; });
    add_run(std::move(refined->choice));
    if (!runs_.back()->run) runs_.back()->first = std::move(refined->plan);
    return true;
  }

  void add_run(Candidate choice) {
    const bool has_begun = copies_ != nullptr && choice.ways.empty();
    runs_.push_back(has_begun ? std::move(copies_) : std::make_unique<TurnOfBest>(std::move(choice)));
  }

  /// Runs `best` for the refined choice, or the one with the best rating, for the other division, and for copies alone,
  /// in turns.
  [[nodiscard]] Result<Found> plan_best() {
    std::ranges::stable_sort(candidates_, {}, order_of);
    int with_ways = !runs_.empty() && !runs_.front()->choice.ways.empty() ? 1 : 0;  // the refined one
    for (Candidate& candidate : candidates_) {
      if (!candidate.ways.empty() && ++with_ways >= std::max(options_.plans, 2)) continue;
      add_run(std::move(candidate));
    }
    if (other_ != nullptr) {
      auto turn = std::make_unique<TurnOfBest>(Candidate{other_->is_finer ? runs_.front()->choice.ways : WaysBack{}});
      turn->is_other = true;
      runs_.insert(runs_.begin() + 1, std::move(turn));
    }
    take_turns();
    if (fastest_ == nullptr) return problem_;
    return finish(*fastest_);
  }

  void take_turns() {
    // A plan that is known, and was told of, counts even if there is no time left.
    for (const auto& turn : runs_) {
      if (turn->first && !turn->run && begin(*turn) && is_fastest(*turn)) fastest_ = turn.get();
    }
    for (int round = 0; !runs_.empty(); ++round) {
      bool runs_on = false;
      for (const auto& turn : runs_) {
        if (fastest_ != nullptr && !bound_ && !go_on()) bound_ = bound();
        // Some plan is there even if there is no time.
        if (fastest_ != nullptr && !go_on()) return;
        if (is_behind(*turn)) continue;
        // The first round is for plans that are as fast as can be, too: it looks for one that moves fewer bytes.
        if (turn->has_run) {
          if (turn->run->is_done() || (!is_by_clock() && round >= turn->run->rounds_without_clock())) continue;
        } else if (!turn->run && !begin(*turn)) {
          continue;
        }
        turn->run->run(1);
        turn->has_run = true;
        runs_on = true;
        if (is_fastest(*turn)) fastest_ = turn.get();
      }
      if (!runs_on) return;
    }
  }

  [[nodiscard]] bool is_fastest(const TurnOfBest& turn) const {
    return fastest_ == nullptr || turn.run->reached() < fastest_->run->reached();
  }

  /// Whether its plan cannot become, or is unlikely to become, the fastest one.
  [[nodiscard]] bool is_behind(const TurnOfBest& turn) const {
    if (fastest_ == nullptr || fastest_ == &turn) return false;
    // Copies alone run to their end where that is quick, so that no other way makes a plan slower.
    if (turn.choice.ways.empty() && !turn.is_other && trace_.operations.size() <= small_trace) return false;
    const nanoseconds best = fastest_->run->reached();
    if (turn.choice.relaxed >= best) return true;
    return turn.run && static_cast<double>(turn.run->reached().count()) >
                           (1 + options_.most_behind) * static_cast<double>(best.count());
  }

  bool begin(TurnOfBest& turn) {
    Result<WrittenTrace> written = turn.is_other
                                       ? with_ways(other_->program.trace, *other_history_, for_other(turn.choice.ways))
                                       : with_ways(trace_, history_, turn.choice.ways);
    if (!written) return false;
    if (const auto problem = turn.begin(*std::move(written), planning_.machine, options_.best, limits_)) {
      problem_ = *problem;
      return false;
    }
    if (fastest_ == nullptr) fastest_ = &turn;
    return true;
  }

  /// Tensors with forms are not divided.
  [[nodiscard]] WaysBack for_other(WaysBack ways) const {
    for (Coding& coding : ways.codings) {
      const TensorId original = program_.parts[index(coding.tensor)].tensor;
      const auto part = std::ranges::find(other_->program.parts, original, &TensorPart::tensor);
      coding.tensor = static_cast<TensorId>(part - other_->program.parts.begin());
    }
    return ways;
  }

  [[nodiscard]] nanoseconds bound() const {
    const bool is_other = other_ != nullptr && other_->is_finer;
    const DividedTrace& finest = is_other ? other_->program : program_;
    const bool has_pieces =
        std::ranges::any_of(finest.parts, [](const TensorPart& part) { return part.piece.has_value(); });
    return ways_bound(finest.trace, is_other ? *other_history_ : history_, is_other ? other_->planning : planning_,
                      has_pieces ? BoundFor::tensors : BoundFor::pieces, options_.best.bound);
  }

  [[nodiscard]] Found finish(TurnOfBest& turn) {
    ProvenPlan proven = turn.run->finish();
    proven.plan.planner = "best";
    finish_plan(*turn.planning, proven.plan, proven.lower_bound);
    Found found{{std::move(turn.choice.ways), std::move(proven.plan)}, turn.is_other};
    Prediction& predicted = found.plan.plan.predicted;
    predicted.lower_bound = std::min(bound_ ? *bound_ : bound(), predicted.iteration);
    return found;
  }

  const DividedTrace& program_;
  const Trace& trace_;
  const PlanningCase& planning_;
  const OtherDivision* other_;
  const WaysOptions& options_;
  PlanningOptions limits_;       // tell of the fastest plan of all
  nanoseconds fastest_time_{0};  // that was told of; 0: none
  ValueHistory history_;
  std::optional<ValueHistory> other_history_;
  WayChoice choice_;
  WayRating rating_;
  std::size_t most_close_ = rating_.close_left();
  std::vector<Candidate> candidates_;
  std::optional<WayCriteria> best_criteria_;  // whose choice has the best rating
  std::vector<std::unique_ptr<TurnOfBest>> runs_;
  std::unique_ptr<TurnOfBest> copies_;  // it has begun, and is none of runs_ yet
  bool chooses_ = false;
  TurnOfBest* fastest_ = nullptr;
  std::optional<nanoseconds> bound_;  // for every choice of ways, once it is known
  Problem problem_{"no time for a plan"};
};

Result<PlanWithWays> plan_with_all_ways(const Trace& trace, const Machine& machine, const PlanningOptions& limits,
                                        const WaysOptions& options) {
  const Trace allowed = only_ways(trace, limits.ways);
  const std::vector<TensorPieces> possible = limits.ways.pieces
                                                 ? possible_pieces(only_ways(allowed, {.compress = false}), machine)
                                                 : std::vector<TensorPieces>{};
  std::vector<TensorPieces> pieces = possible;
  // Where forms may be used, tensors that have some are encoded as a whole.
  std::erase_if(pieces, [&](const TensorPieces& divided) { return !forms_of(allowed, divided.tensor).empty(); });
  pieces = pieces_that_fit(allowed, machine, std::move(pieces));
  const Result<DividedTrace> whole = with_pieces(allowed, {});
  if (!whole) return whole.problem();
  const Trace plain_whole = without_ways(whole->trace);
  const bool may_divide = !pieces.empty();
  const auto with_bound_of_all = [&](PlanWithWays made) {
    const auto bound = ways_bound(allowed, machine, options.best.bound);
    Prediction& predicted = made.plan.predicted;
    const std::chrono::nanoseconds compute = compute_time(allowed);
    predicted.lower_bound = std::min(bound ? std::max(*bound, compute) : compute, predicted.iteration);
    return made;
  };
  // An operation that is not in pieces may access a part of a tensor whose other part is away.
  const bool leaves_whole = std::ranges::any_of(allowed.ranges, [&](const AccessRange& range) {
    return !allowed.operations[index(range.operation)].in_pieces &&
           std::ranges::find(pieces, range.tensor, &TensorPieces::tensor) == pieces.end();
  });
  const bool divides_less = pieces != possible || leaves_whole;  // with other divisions, a plan may be faster
  if (!may_divide && !has_ways(allowed)) {
    Result<Plan> plan = best_planner(options.best).make(plain_whole, machine, limits);
    if (!plan) return plan.problem();
    PlanWithWays made{{}, *std::move(plan)};
    return divides_less ? with_bound_of_all(std::move(made)) : std::move(made);
  }
  const Problem undivided{"no tensor can be divided"};
  const Result<DividedTrace> divided = may_divide ? with_pieces(allowed, pieces) : Result<DividedTrace>(undivided);
  if (may_divide && !divided) return divided.problem();
  const Trace plain_divided = may_divide ? without_ways(divided->trace) : Trace{};
  const Result<PlanningCase> of_whole = make_planning_case(plain_whole, machine);
  const Result<PlanningCase> of_divided =
      may_divide ? make_planning_case(plain_divided, machine) : Result<PlanningCase>(undivided);
  if (!of_whole && !of_divided) return of_whole.problem();
  // What writes a part of a tensor updates it if it is not divided, and may not run again then.
  const bool is_divided = of_divided && (!of_whole || !allowed.ranges.empty());
  const DividedTrace& program = is_divided ? *divided : *whole;
  const Result<PlanningCase>& planning = is_divided ? of_divided : of_whole;
  std::optional<OtherDivision> other;
  if (of_whole && of_divided) {
    other.emplace(is_divided ? OtherDivision{*whole, *of_whole, false} : OtherDivision{*divided, *of_divided, true});
  }
  WaysSearch search(program, *planning, other ? &*other : nullptr, options, limits);
  Result<WaysSearch::Found> found = search.run();
  if (!found) return found.problem();
  PlanWithWays& made = found->plan;
  for (Coding& coding : made.ways.codings) coding.tensor = program.parts[index(coding.tensor)].tensor;
  if (found->is_other != is_divided) made.ways.pieces = pieces;
  if (divides_less || (may_divide && !of_divided)) return with_bound_of_all(std::move(made));
  return std::move(made);
}

}  // namespace
}  // namespace swapmm::planning

namespace swapmm {

Result<PlanWithWays> plan_with_ways(const Trace& trace, const Machine& machine, const PlanningOptions& limits,
                                    const WaysOptions& options) {
  if (!trace.engines.empty()) return Problem{"operations name engines"};
  const bool is_small = trace.operations.size() <= planning::small_trace;
  const std::vector<Ways> fewer = is_small ? planning::fewer_ways(trace, limits.ways) : std::vector<Ways>{};
  const auto searches = static_cast<double>(fewer.size() + 1);
  const auto within_share = [&](std::size_t search) {
    const auto before = static_cast<double>(search);
    return planning::in_part_of_time(limits, before / searches, (before + 1) / searches);
  };
  Result<PlanWithWays> best = planning::plan_with_all_ways(trace, machine, within_share(0), options);
  if (!best && fewer.empty() && planning::ways_in(trace).compress && limits.ways.compress) {
    // Tensors that have forms may have to be divided instead. The bound of that search is for plans without forms.
    PlanningOptions without_forms = limits;
    without_forms.ways.compress = false;
    Result<PlanWithWays> made = planning::plan_with_all_ways(trace, machine, without_forms, options);
    if (!made) return best;
    made->plan.predicted.lower_bound = planning::compute_time(trace);
    return made;
  }
  if (fewer.empty()) return best;
  const auto bound = best ? best->plan.predicted.lower_bound : planning::compute_time(trace);
  const auto rank = [](const PlanWithWays& made) {
    const Prediction& predicted = made.plan.predicted;
    return std::pair(predicted.iteration, predicted.h2d + predicted.d2h);
  };
  for (std::size_t i = 0; i < fewer.size() && !(best && best->plan.predicted.iteration <= bound); ++i) {
    if (limits.go_on && !limits.go_on({})) break;
    PlanningOptions part = within_share(i + 1);
    part.ways = fewer[i];
    Result<PlanWithWays> made = planning::plan_with_all_ways(trace, machine, part, options);
    if (made && (!best || rank(*made) < rank(*best))) best = std::move(made);
  }
  if (!best) return best;
  best->plan.predicted.lower_bound = std::min(bound, best->plan.predicted.iteration);
  return best;
}

}  // namespace swapmm
