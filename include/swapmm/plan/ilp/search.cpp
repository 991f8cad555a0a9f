// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/ilp/search.hpp>

#include <algorithm>
#include <cmath>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/plan/baselines/on_demand.hpp>
#include <swapmm/plan/excess_overlap/excess_overlap.hpp>
#include <swapmm/plan/excess_overlap/overlap_stays.hpp>
#include <swapmm/plan/excess_overlap/overlap_trades.hpp>
#include <swapmm/plan/ilp/order_decisions.hpp>
#include <swapmm/plan/ilp/orders.hpp>
#include <swapmm/plan/ilp/polish.hpp>
#include <swapmm/plan/ilp/slots.hpp>
#include <swapmm/plan/ilp/solver/checked.hpp>
#include <swapmm/plan/ilp/timed_plan.hpp>
#include <swapmm/plan/ilp/windows.hpp>
#include <swapmm/plan/problem/share.hpp>
#include <swapmm/plan/schedule/absence_stays.hpp>
#include <swapmm/plan/schedule/best_plan.hpp>
#include <swapmm/plan/search/best.hpp>

namespace swapmm::planning::ilp {
namespace {

using std::chrono::nanoseconds;

constexpr std::string_view name = "ilp";
constexpr std::string_view slot_name = "slots";
constexpr std::string_view order_name = "orders";

/// Relative error that the solver's arithmetic may cause.
constexpr double precision = 2e-5;

class Search {
 public:
  Search(const Solver& solver, const PlanningCase& planning, const IlpOptions& options, const PlanningOptions& limits,
         Plan first, nanoseconds bound)
      : solver_(solver),
        planning_(planning),
        options_(options),
        limits_(limits),
        ledger_(planning),
        best_(planning, std::move(first)) {
    bound_ = std::max(best_.simulation().compute, bound);
  }

  IlpResult run() {
    if (!is_done() && options_.slot_program) try_slots();
    if (!is_done() && options_.order_program && keep_going()) {
      if (fits(options_.tiny)) {
        try_orders();
      } else if (fits(options_.windows.most)) {
        try_windows();
      } else if (!options_.slot_program) {
        note_too_large();
      }
    }
    IlpResult result;
    result.notes = std::move(notes_);
    result.plan = std::move(best_).take();
    finish_plan(planning_, result.plan, options_.bound);
    result.lower_bound = std::max(bound_, result.plan.predicted.lower_bound);
    result.plan.predicted.lower_bound = result.lower_bound;
    const nanoseconds iteration = result.plan.predicted.iteration;
    const auto bound = static_cast<double>(result.lower_bound.count());
    result.gap = bound > 0 ? static_cast<double>((iteration - result.lower_bound).count()) / bound : 0;
    result.status = result.gap <= precision      ? IlpStatus::optimal
                    : result.gap <= options_.gap ? IlpStatus::within
                                                 : IlpStatus::feasible;
    return result;
  }

 private:
  bool is_done() const {
    const auto bound = static_cast<double>(bound_.count());
    return static_cast<double>(best_.simulation().iteration.count()) <= bound * (1 + std::max(options_.gap, precision));
  }

  bool keep_going() { return !limits_.go_on || limits_.go_on({best_.simulation().iteration, bound_}); }

  /// The best plan is a solution of each program. A bound above it is a numerical error of the solver and proves
  /// nothing.
  void raise_bound(std::string_view program, nanoseconds bound) {
    const nanoseconds least = best_.simulation().iteration;
    if (bound <= least) {
      bound_ = std::max(bound_, bound);
    } else if (static_cast<double>(bound.count()) > static_cast<double>(least.count()) * (1 + precision)) {
      note_failure(program, "its bound is above the time of a plan");
    }
  }

  void note(std::string text) {
    if (std::find(notes_.begin(), notes_.end(), text) == notes_.end()) notes_.push_back(std::move(text));
  }
  void note_failure(std::string_view program, const std::string& problem) {
    note("the solver failed on the program over " + std::string(program) + " (" + problem +
         "): this is the best plan found without its answer");
  }
  void note_too_large() {
    note("the program over orders was not solved: it is for up to " +
         std::to_string(std::max(options_.tiny, options_.windows.most)) + " operations and absences, and here are " +
         std::to_string(planning_.operations) + " and " + std::to_string(counted_absences()));
  }

  /// The best plan is a solution of each program, so there is one.
  Solution solved(std::string_view program_name, const Program& program, const Limits& limits) {
    return noted(program_name, checked(program, solver_.solve(program, limits), true));
  }
  Solution relaxed(std::string_view program_name, const Program& program, const Limits& limits) {
    return noted(program_name, checked(program, solver_.relax(program, limits), false));
  }
  Solution noted(std::string_view program_name, Solution solution) {
    if (solution.outcome == Outcome::failed) note_failure(program_name, solution.problem);
    return solution;
  }

  std::uint32_t slots() const {
    if (options_.slots > 0) return std::min(options_.slots, planning_.operations);
    if (planning_.operations <= options_.exact_slots) return planning_.operations;
    return std::clamp(options_.coarse_slots, 1U, planning_.operations);
  }

  void try_slots() {
    Limits limits;
    limits.go_on = [&](double, double) { return keep_going(); };
    const bool is_fine = slots() == planning_.operations;
    const SlotModel wide = make_slot_model(ledger_, slots(), Rounding::outward);
    const Solution least = relaxed(slot_name, wide.program, limits);
    if (least.outcome == Outcome::optimal) raise_bound(slot_name, iteration_bound(wide, least.bound));
    if (is_done() || !keep_going()) return;
    OverlapDecision decision;
    if (is_fine) {
      raise_bound(slot_name, iteration_bound(wide, choose(wide, limits, decision).bound));
    } else {
      const SlotModel narrow = make_slot_model(ledger_, slots(), Rounding::inward);
      const Solution parts = relaxed(slot_name, narrow.program, limits);
      if (!parts.values.empty()) try_decision(decide_stays(narrow, ledger_, parts.values), decision);
      if (!is_done() && keep_going()) choose(narrow, limits, decision);
    }
    if (!is_done()) {
      trade_stays(
          ledger_, name, decision, best_, [&] { return keep_going(); }, options_.trades, options_.hiding);
    }
  }

  bool fits(std::size_t most) const { return planning_.operations <= most && counted_absences() <= most; }

  std::size_t counted_absences() const {
    const std::vector<bool> counted = may_save(ledger_);
    return static_cast<std::size_t>(std::count(counted.begin(), counted.end(), true));
  }

  void try_orders() {
    const OrdersModel model = make_orders_model(ledger_, best_.simulation().iteration);
    Limits limits;
    limits.go_on = [&](double, double) { return keep_going(); };
    limits.nodes = options_.order_nodes;
    limits.relative_gap = options_.gap / 10;  // packing uses up some of the gap, too
    const Solution solution = solved(order_name, model.program, limits);
    raise_bound(order_name, iteration_bound(model, solution.bound));
    if (solution.values.empty()) return;
    offer_timed(model, solution.values);
    try_other_solutions(model, limits, solution.values);
    if (is_done()) return;
    for (const bool leaves_early : {false, true}) {
      decide(model, solution.values, leaves_early, ledger_);
      Result<BuiltPlan> built = build_plan(planning_, {Pace::overlapped, stays_of(ledger_)}, name);
      if (built && built->plan) best_.offer(*std::move(built->plan));
    }
    if (is_done()) return;
    decide(model, solution.values, false, ledger_);
    polish(
        ledger_, name, {options_.polish_tries, options_.polish_steps}, [&] { return is_done() || !keep_going(); },
        best_);
  }

  void try_windows() {
    decide_windows({solver_, ledger_, name, options_, [this] { return is_done() || !keep_going(); },
                    [this](const std::string& problem) { note_failure(order_name, problem); }},
                   best_);
  }

  void offer_timed(const OrdersModel& model, const std::vector<double>& values) {
    std::optional<Plan> timed = timed_plan(model, values, ledger_, name, options_.timed_packing_steps);
    if (timed) best_.offer(*std::move(timed));
  }

  /// There may be other solutions that take no longer, and pack. Costs of absences lead to them.
  void try_other_solutions(OrdersModel model, const Limits& limits, const std::vector<double>& values) {
    model.program.columns[static_cast<std::size_t>(model.iteration)].upper =
        values[static_cast<std::size_t>(model.iteration)] * (1 + precision / 4);
    std::mt19937_64 random(1);
    for (std::uint32_t i = 0; i < options_.other_solutions && !is_done() && keep_going(); ++i) {
      for (const int out : model.out) {
        if (out < 0) continue;
        const double share = static_cast<double>(random() >> 11U) * 0x1p-53 - 0.5;
        model.program.columns[static_cast<std::size_t>(out)].cost = share;
      }
      const Solution other = solved(order_name, model.program, limits);
      if (!other.values.empty()) offer_timed(model, other.values);
    }
  }

  /// Solves the integer program, and tries its decisions.
  Solution choose(const SlotModel& model, Limits limits, OverlapDecision& decision) {
    const auto size = static_cast<double>(model.program.columns.size() + model.program.rows.size());
    limits.nodes = static_cast<std::uint32_t>(
        std::min(std::max(options_.node_work / size, static_cast<double>(options_.least_nodes)),
                 static_cast<double>(options_.most_nodes)));
    limits.relative_gap = std::max(options_.gap / 10, 1e-4);
    Solution solution = solved(slot_name, model.program, limits);
    if (!solution.values.empty()) try_decision(decide_stays(model, ledger_, solution.values), decision);
    return solution;
  }

  /// Packs and simulates the decisions. Places cost more than bytes, and copies that come early fill the room that
  /// there is. Therefore only a share of the budget is allowed, for the tensors that stay and for everything.
  void try_decision(const std::vector<bool>& stays, OverlapDecision& decision) {
    for (const IlpShares& share : options_.shares) {
      const std::uint64_t bytes = part_of_budget(share.all);
      const std::vector<bool> decided = fitting(stays, part_of_budget(share.staying));
      std::vector<Stay> chosen =
          overlap_stays(ledger_, {.bytes = bytes, .stay_bytes = 0, .decided = decided}, options_.hiding);
      Result<BuiltPlan> built = build_plan(planning_, {Pace::overlapped, std::move(chosen)}, name, options_.packing);
      if (!built) return;
      if (!built->plan) continue;
      if (best_.offer(*std::move(built->plan))) decision = {bytes, decided_stays(ledger_)};
      if (is_done()) return;
    }
  }

  std::uint64_t part_of_budget(double share) const {
    return std::max(planning_.liveness.largest_bundle.value, share_of(planning_.budget, share));
  }

  std::vector<bool> fitting(const std::vector<bool>& stays, std::uint64_t bytes) {
    for (std::size_t i = 0; i < stays.size(); ++i) {
      Absence& a = ledger_.absences[i];
      a.stays = stays[i];
      a.leaves = a.first;
      a.returns = a.end;
      a.queued = a.end;
    }
    let_go_until_it_fits(ledger_, bytes);
    return decided_stays(ledger_);
  }

  const Solver& solver_;
  const PlanningCase& planning_;
  const IlpOptions& options_;
  const PlanningOptions& limits_;
  OverlapLedger ledger_;
  BestPlan best_;
  nanoseconds bound_{0};
  std::vector<std::string> notes_;
};

}  // namespace

Result<IlpResult> plan_by(const Solver& solver, const Trace& trace, const Machine& machine, const IlpOptions& options,
                          const PlanningOptions& limits) {
  const Result<PlanningCase> planning = make_planning_case(trace, machine);
  if (!planning) return planning.problem();
  Result<Plan> belady =
      build_on_demand_plan(*planning, name, Pace::between_operations, Victim::used_furthest_ahead, options.belady);
  if (!belady) return belady.problem();
  BestPlan first(*planning, *std::move(belady));
  if (options.excess_overlap_first) {
    Result<Plan> overlapped = build_excess_overlap_plan(*planning, name, options.excess_overlap, {});
    if (!overlapped) return overlapped.problem();
    first.offer(*std::move(overlapped));
  }
  nanoseconds bound{0};
  if (options.best_first && planning->operations <= options.most_for_best) {
    PlanningOptions in_steps = limits;
    in_steps.keeps_to_steps = true;
    Result<ProvenPlan> best = build_best_plan(*planning, options.best, in_steps, {});
    if (!best) return best.problem();
    bound = best->lower_bound;
    best->plan.planner = name;
    first.offer(std::move(best->plan));
  }
  return Search(solver, *planning, options, limits, std::move(first).take(), bound).run();
}

}  // namespace swapmm::planning::ilp
