// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>

#include <swapmm/base/export.hpp>
#include <swapmm/base/result.hpp>
#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/machine.hpp>
#include <swapmm/plan/plan.hpp>
#include <swapmm/plan/planner.hpp>

namespace swapmm {

/// How the integer program is made and solved. How long: PlanningOptions::go_on.
struct IlpOptions {
  /// Operations are put together to that many slots: more give a better plan and a tighter bound, and take longer. 0:
  /// one per operation up to 48 operations, above that 40 slots.
  std::uint32_t slots = 0;
  /// Ends where the plan is at most that much above the proven bound: 0.01 for one percent.
  double gap = 0;
};

/// How sure it is.
enum class IlpStatus : std::uint8_t {
  optimal,   ///< no valid plan is faster, but for 1/50,000 that the solver's arithmetic leaves open
  within,    ///< what was asked for: within IlpOptions::gap of the bound
  feasible,  ///< a valid plan; how far from the bound at most, IlpResult::gap says
};

/// As a person reads it.
[[nodiscard]] constexpr std::string_view to_string(IlpStatus status) {
  switch (status) {
    case IlpStatus::optimal: return "optimal: no valid plan is faster";
    case IlpStatus::within: return "within the gap that was asked for";
    case IlpStatus::feasible: return "feasible: a faster plan may exist, within the gap";
  }
  return "unknown";
}

struct IlpResult {
  Plan plan;  ///< `predicted.lower_bound` is the bound below
  IlpStatus status = IlpStatus::feasible;
  std::chrono::nanoseconds lower_bound{0};  ///< no valid plan for this trace and machine is faster
  double gap = 0;                           ///< (iteration - lower_bound) / lower_bound
};

/// The planner `ilp`: integer linear programs, solved by COIN-OR Cbc. Part of the component `ilp` (target
/// swapmm::ilp), which links Cbc; the core does not.
///
/// With up to 14 operations and 14 absences (plan/problem/overlap_ledger.hpp), a program over times and orders
/// (plan/ilp/orders.hpp) is exact but for the packing of offsets: what it finds is the optimum if it packs, and a bound
/// in any case. Where it does not pack, small random changes look for the best that does.
/// Otherwise a program over slots (plan/ilp/slots.hpp) is a relaxation: its optimum bounds every plan, and it chooses
/// who goes out. When each leaves and returns is then found by overlap_stays(), packed, with less of the budget where
/// it does not pack, and simulated; tensors trade places as in excess-overlap.
/// The result is never worse than Belady's and excess-overlap's plans, which are tried first.
///
/// go_on is asked between the nodes of Cbc's search and while Clp works. Without it, the search ends after a number of
/// nodes that falls with the program's size. Planning 1,500 operations takes seconds to minutes.
[[nodiscard]] SWAPMM_EXPORT Result<IlpResult> plan_by_ilp(const Trace& trace, const Machine& machine,
                                                          const IlpOptions& options = {},
                                                          const PlanningOptions& limits = {});

/// From now on planners() and make_plan() know `ilp`, in the whole process. Call it once, before other threads plan;
/// again does no harm.
SWAPMM_EXPORT void provide_ilp();

}  // namespace swapmm
