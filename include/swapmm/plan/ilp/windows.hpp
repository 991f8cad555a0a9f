// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <swapmm/plan/ilp.hpp>
#include <swapmm/plan/ilp/orders.hpp>
#include <swapmm/plan/ilp/solver/solver.hpp>
#include <swapmm/plan/problem/overlap_ledger.hpp>
#include <swapmm/plan/schedule/best_plan.hpp>
#include <swapmm/plan/simulate.hpp>

namespace swapmm::planning::ilp {

/// The program over times and orders in which everything happens when it does in the plan. What is left open follows
/// from that. For plans whose iterations are all alike; others may have no solution.
[[nodiscard]] Program fixed_to_plan(const OrdersModel& model, const OverlapLedger& ledger, const Plan& plan,
                                    const Simulation& simulation);

/// Sets of at most `most` absences that are decided anew together: those that overlap with some consecutive operations,
/// or touch them. One for each first operation, with as many operations as possible. Absences that cannot save anything
/// are in none.
[[nodiscard]] std::vector<std::vector<std::uint32_t>> windows_of(const OverlapLedger& ledger, std::size_t most);

/// The program in which all decisions are as in `values`, except those about an absence of the window, or about the
/// copy of its value to the host. All times are open.
[[nodiscard]] Program opened_at(const OrdersModel& model, const OverlapLedger& ledger,
                                const std::vector<std::uint32_t>& window, const std::vector<double>& values);

/// What windows need of the search around them.
struct WindowSearch {
  const Solver& solver;
  OverlapLedger& ledger;
  std::string_view planner;
  const IlpOptions& options;
  std::function<bool()> is_over;                       ///< the search ends: it was stopped, or the plan is good enough
  std::function<void(const std::string&)> on_failure;  ///< is told why the solver failed
};

/// Decides one window of the best plan after the other anew, each exactly, in turn, until none gains. A solution that
/// does not pack is changed a little, and solutions that take longer are tried.
void decide_windows(const WindowSearch& search, BestPlan& best);

}  // namespace swapmm::planning::ilp
