// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <swapmm/base/export.hpp>
#include <swapmm/base/result.hpp>
#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/machine.hpp>
#include <swapmm/plan/packing.hpp>
#include <swapmm/plan/plan.hpp>
#include <swapmm/plan/planner.hpp>
#include <swapmm/plan/planner_options.hpp>

namespace swapmm {

/// Parts of the budget for packing the decisions of the integer program.
struct IlpShares {
  double staying = 1;  ///< for tensors that stay
  double all = 1;      ///< for everything, including copies that come early
};

/// Parameters of the windows of `ilp`: parts of the plan that are decided anew, each exactly, while the rest stays as
/// it is. For programs that are too large to be decided as a whole (docs/decisions/0029-exact-on-windows.md).
struct IlpWindowOptions {
  std::size_t most = 64;              ///< most operations, and absences over which going out may save anything. 0: none
  std::size_t absences = 10;          ///< most absences that are decided anew together
  std::uint32_t nodes = 2000;         ///< number of nodes of the search tree of each
  std::size_t programs = 60;          ///< most programs that are solved; it ends before if no window gains
  std::uint32_t polish_tries = 1000;  ///< small random changes of decisions that do not pack
};

/// Parameters of `ilp`: how the integer programs are made and solved. PlanningOptions::go_on limits the time. Each
/// technique can be switched off.
struct IlpOptions {
  /// Number of slots into which operations are combined. More slots give a better plan and a tighter bound, and take
  /// longer. 0: one per operation up to `exact_slots` operations, `coarse_slots` above.
  std::uint32_t slots = 0;
  /// The search ends if the plan is at most this much above the proven bound: 0.01 is one percent.
  double gap = 0;

  bool slot_program = true;         ///< the program over slots of operations
  std::uint32_t exact_slots = 48;   ///< see slots
  std::uint32_t coarse_slots = 40;  ///< see slots
  /// Number of nodes of its search tree: `node_work` / (rows + columns), within the two limits below.
  double node_work = 2e6;
  std::uint32_t least_nodes = 20;   ///< see node_work
  std::uint32_t most_nodes = 5000;  ///< see node_work
  /// Its decisions are packed in each of these parts of the budget, until a plan is within the gap.
  std::vector<IlpShares> shares{{1, 1}, {1, 0.92}, {1, 0.88}, {0.97, 0.92}, {0.97, 0.88}, {0.94, 0.88}, {0.9, 0.84}};
  PackingEffort packing{.ejection_steps = 2000};  ///< effort for each part
  HidingOptions hiding{};                         ///< how copies are hidden for these decisions
  TradeOptions trades{};                          ///< the local search after it

  bool order_program = true;            ///< for tiny traces: the program over times and orders
  std::size_t tiny = 16;                ///< most operations, and most absences over which going out may save anything
  std::uint32_t order_nodes = 100'000;  ///< number of nodes of its search tree
  /// PackingEffort::ejection_steps for its solution as it is. 0: greedy orders only.
  std::uint32_t timed_packing_steps = 20'000;
  std::uint32_t other_solutions = 3;  ///< how many more are looked for if the first does not pack. 0: none
  /// Number of small random changes to try if the decisions do not pack, or if copies wait for places. 0: none.
  std::uint32_t polish_tries = 5000;
  std::uint32_t polish_steps = 500;  ///< PackingEffort::ejection_steps of each

  IlpWindowOptions windows{};  ///< for programs that are larger than `tiny`

  /// The plan of `best`, after its few rounds, must be beaten, and the bound that it proves counts. For programs above
  /// `most_for_best` operations it takes a large part of the time, so it is left out there.
  bool best_first = true;
  std::uint32_t most_for_best = 20'000;       ///< see best_first
  BestOptions best{.others = {.on = false}};  ///< for that plan
  bool excess_overlap_first = true;           ///< its plan must be beaten, as Belady's must
  ExcessOverlapOptions excess_overlap{};      ///< for that plan
  OnDemandOptions belady{};                   ///< for Belady's plan
  BoundOptions bound{};                       ///< for the relaxation's bound, which counts if it is better
};

/// How good the plan of `ilp` is known to be.
enum class IlpStatus : std::uint8_t {
  optimal,   ///< no valid plan is faster, except for 1/50,000 due to the solver's arithmetic
  within,    ///< within IlpOptions::gap of the bound
  feasible,  ///< a valid plan; IlpResult::gap limits its distance from the bound
};

/// The status as text for people.
[[nodiscard]] constexpr std::string_view to_string(IlpStatus status) {
  switch (status) {
    case IlpStatus::optimal: return "optimal: no valid plan is faster";
    case IlpStatus::within: return "within the gap that was asked for";
    case IlpStatus::feasible: return "feasible: a faster plan may exist, within the gap";
  }
  return "unknown";
}

/// A plan, and what is proven about it.
struct IlpResult {
  Plan plan;                                ///< `predicted.lower_bound` is the bound below
  IlpStatus status = IlpStatus::feasible;   ///< why the search ended
  std::chrono::nanoseconds lower_bound{0};  ///< no valid plan for this trace and machine is faster
  double gap = 0;                           ///< (iteration - lower_bound) / lower_bound
  /// Sentences for people: what the solver failed in, and what was asked for and not done. The plan is valid, no worse
  /// than those that were tried first, and what is proven about it does not rest on what failed. Usually empty.
  std::vector<std::string> notes{};
};

/// Makes a plan with integer linear programs, solved by COIN-OR Cbc. Part of the component `ilp` (target swapmm::ilp),
/// which links Cbc; the core does not.
///
/// With few operations and absences (IlpOptions::tiny; plan/problem/overlap_ledger.hpp), a program over times and
/// orders (plan/ilp/orders.hpp) is exact except for the packing of offsets: its result is the optimum if it packs, and
/// a bound in any case. If it does not pack, small random changes search for the best plan that does. Programs of
/// middle size (IlpOptions::windows) have parts of their best plan decided by it. Otherwise, a program over slots
/// (plan/ilp/slots.hpp) is a relaxation: its optimum is a bound for every plan, and it decides which tensors go out.
/// overlap_stays() then finds when each tensor leaves and returns. The result is packed (with less of the budget if it
/// does not pack) and simulated, and tensors trade places as in excess-overlap. The result is never worse than the
/// plans of Belady, excess-overlap and `best` (after its usual rounds), which are tried first.
///
/// go_on is called between the nodes of Cbc's search and while Clp works. Without it, the search ends after a number of
/// nodes that falls with the program's size. Planning 1,500 operations takes seconds to minutes.
///
/// Cbc runs in this thread and process. If it fails, or its answer cannot be right, the result is the best plan found
/// without it, with a note. What go_on throws passes through after Cbc has stopped.
[[nodiscard]] SWAPMM_EXPORT Result<IlpResult> plan_by_ilp(const Trace& trace, const Machine& machine,
                                                          const IlpOptions& options = {},
                                                          const PlanningOptions& limits = {});

/// The same as a planner. Call it, or pass it to SchedulerOptions::planner.
[[nodiscard]] SWAPMM_EXPORT NamedPlanner ilp_planner(const IlpOptions& options = {});

}  // namespace swapmm
