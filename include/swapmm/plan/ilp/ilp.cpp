// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/ilp.hpp>

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
#include <swapmm/plan/ilp/orders.hpp>
#include <swapmm/plan/ilp/polish.hpp>
#include <swapmm/plan/ilp/slots.hpp>
#include <swapmm/plan/ilp/timed_plan.hpp>
#include <swapmm/plan/problem/share.hpp>
#include <swapmm/plan/schedule/absence_stays.hpp>
#include <swapmm/plan/schedule/best_plan.hpp>
#include <swapmm/plan/search/best.hpp>

namespace swapmm {
namespace {

namespace ilp = planning::ilp;

using planning::Absence;
using planning::BestPlan;
using planning::build_excess_overlap_plan;
using planning::build_on_demand_plan;
using planning::build_plan;
using planning::BuiltPlan;
using planning::decided_stays;
using planning::finish_plan;
using planning::let_go_until_it_fits;
using planning::make_planning_case;
using planning::overlap_stays;
using planning::OverlapDecision;
using planning::OverlapLedger;
using planning::Pace;
using planning::PlanningCase;
using planning::Stay;
using planning::stays_of;
using planning::trade_stays;
using planning::Victim;
using std::chrono::nanoseconds;

constexpr std::string_view name = "ilp";

/// Relative error that the solver's arithmetic may cause.
constexpr double precision = 2e-5;

class Search {
 public:
  Search(const PlanningCase& planning, const IlpOptions& options, const PlanningOptions& limits, Plan first,
         nanoseconds bound)
      : planning_(planning), options_(options), limits_(limits), ledger_(planning), best_(planning, std::move(first)) {
    bound_ = std::max(best_.simulation().compute, bound);
  }

  IlpResult run() {
    if (!is_done() && options_.slot_program) try_slots();
    if (!is_done() && options_.order_program && keep_going() && is_tiny()) try_orders();
    IlpResult result;
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
  void raise_bound(nanoseconds bound) {
    if (bound <= best_.simulation().iteration) bound_ = std::max(bound_, bound);
  }

  std::uint32_t slots() const {
    if (options_.slots > 0) return std::min(options_.slots, planning_.operations);
    if (planning_.operations <= options_.exact_slots) return planning_.operations;
    return std::clamp(options_.coarse_slots, 1U, planning_.operations);
  }

  void try_slots() {
    using ilp::Rounding;
    ilp::Limits limits;
    limits.go_on = [&](double, double) { return keep_going(); };
    const bool is_fine = slots() == planning_.operations;
    const ilp::SlotModel wide = ilp::make_slot_model(ledger_, slots(), Rounding::outward);
    const ilp::Solution least = ilp::solve_relaxation(wide.program, limits);
    if (least.outcome == ilp::Outcome::optimal) raise_bound(ilp::iteration_bound(wide, least.bound));
    if (is_done() || !keep_going()) return;
    OverlapDecision decision;
    if (is_fine) {
      raise_bound(ilp::iteration_bound(wide, choose(wide, limits, decision).bound));
    } else {
      const ilp::SlotModel narrow = ilp::make_slot_model(ledger_, slots(), Rounding::inward);
      const ilp::Solution relaxed = ilp::solve_relaxation(narrow.program, limits);
      if (!relaxed.values.empty()) try_decision(ilp::decide_stays(narrow, ledger_, relaxed.values), decision);
      if (!is_done() && keep_going()) choose(narrow, limits, decision);
    }
    if (!is_done()) {
      trade_stays(
          ledger_, name, decision, best_, [&] { return keep_going(); }, options_.trades, options_.hiding);
    }
  }

  bool is_tiny() const {
    if (planning_.operations > options_.tiny) return false;
    const std::vector<bool> counted = ilp::may_save(ledger_);
    return static_cast<std::size_t>(std::count(counted.begin(), counted.end(), true)) <= options_.tiny;
  }

  void try_orders() {
    const ilp::OrdersModel model = ilp::make_orders_model(ledger_, best_.simulation().iteration);
    ilp::Limits limits;
    limits.go_on = [&](double, double) { return keep_going(); };
    limits.nodes = options_.order_nodes;
    limits.relative_gap = options_.gap / 10;  // packing uses up some of the gap, too
    const ilp::Solution solution = ilp::solve(model.program, limits);
    raise_bound(ilp::iteration_bound(model, solution.bound));
    if (solution.values.empty()) return;
    offer_timed(model, solution.values);
    try_other_solutions(model, limits, solution.values);
    if (is_done()) return;
    for (const bool leaves_early : {false, true}) {
      ilp::decide(model, solution.values, leaves_early, ledger_);
      Result<BuiltPlan> built = build_plan(planning_, {Pace::overlapped, stays_of(ledger_)}, name);
      if (built && built->plan) best_.offer(*std::move(built->plan));
    }
    if (is_done()) return;
    ilp::decide(model, solution.values, false, ledger_);
    ilp::polish(
        ledger_, name, {options_.polish_tries, options_.polish_steps}, [&] { return is_done() || !keep_going(); },
        best_);
  }

  void offer_timed(const ilp::OrdersModel& model, const std::vector<double>& values) {
    std::optional<Plan> timed = ilp::timed_plan(model, values, ledger_, name, options_.timed_packing_steps);
    if (timed) best_.offer(*std::move(timed));
  }

  /// There may be other solutions that take no longer, and pack. Costs of absences lead to them.
  void try_other_solutions(ilp::OrdersModel model, const ilp::Limits& limits, const std::vector<double>& values) {
    model.program.columns[static_cast<std::size_t>(model.iteration)].upper =
        values[static_cast<std::size_t>(model.iteration)] * (1 + precision / 4);
    std::mt19937_64 random(1);
    for (std::uint32_t i = 0; i < options_.other_solutions && !is_done() && keep_going(); ++i) {
      for (const int out : model.out) {
        if (out < 0) continue;
        const double share = static_cast<double>(random() >> 11U) * 0x1p-53 - 0.5;
        model.program.columns[static_cast<std::size_t>(out)].cost = share;
      }
      const ilp::Solution other = ilp::solve(model.program, limits);
      if (!other.values.empty()) offer_timed(model, other.values);
    }
  }

  /// Solves the integer program, and tries its decisions.
  ilp::Solution choose(const ilp::SlotModel& model, ilp::Limits limits, OverlapDecision& decision) {
    const auto size = static_cast<double>(model.program.columns.size() + model.program.rows.size());
    limits.nodes = static_cast<std::uint32_t>(
        std::min(std::max(options_.node_work / size, static_cast<double>(options_.least_nodes)),
                 static_cast<double>(options_.most_nodes)));
    limits.relative_gap = std::max(options_.gap / 10, 1e-4);
    ilp::Solution solution = ilp::solve(model.program, limits);
    if (!solution.values.empty()) try_decision(ilp::decide_stays(model, ledger_, solution.values), decision);
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
    return std::max(planning_.liveness.largest_bundle.value, planning::share_of(planning_.budget, share));
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

  const PlanningCase& planning_;
  const IlpOptions& options_;
  const PlanningOptions& limits_;
  OverlapLedger ledger_;
  BestPlan best_;
  nanoseconds bound_{0};
};

}  // namespace

Result<IlpResult> plan_by_ilp(const Trace& trace, const Machine& machine, const IlpOptions& options,
                              const PlanningOptions& limits) {
  if (!trace.lingering.empty()) return Problem{"the planner ilp does not know values that linger"};
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
    Result<planning::ProvenPlan> best = planning::build_best_plan(*planning, options.best, limits, {});
    if (!best) return best.problem();
    bound = best->lower_bound;
    best->plan.planner = name;
    first.offer(std::move(best->plan));
  }
  return Search(*planning, options, limits, std::move(first).take(), bound).run();
}

NamedPlanner ilp_planner(const IlpOptions& options) {
  const auto make = [options](const Trace& trace, const Machine& machine,
                              const PlanningOptions& limits) -> Result<Plan> {
    Result<IlpResult> result = plan_by_ilp(trace, machine, options, limits);
    if (!result) return result.problem();
    return std::move(result->plan);
  };
  return {std::string(name), make, "an integer linear program, solved by COIN-OR Cbc"};
}

}  // namespace swapmm
