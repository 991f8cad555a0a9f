// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <vector>

#include <swapmm/plan/ilp/solver.hpp>
#include <swapmm/plan/problem/overlap_ledger.hpp>

namespace swapmm::planning::ilp {

/// The integer program over times and orders, exact but for the packing of offsets: its optimum is the least iteration
/// time of any plan in which bytes are free wherever they lie. For few absences.
///
/// Slots cannot be exact: a copy may span operations, and start or end within one. Here every start has a time of its
/// own, the same in each iteration. A plan whose iterations take T on average still has all its waits kept when each
/// start repeats after T, so one T and one time for each start are enough. Copies are in order by disjunctions; a
/// swap-in stands in one gap between operations, so that what is there at its start and at each operation's start is
/// a choice among few. Bytes are checked at those starts alone: in between, they are only given back. Times of the next
/// iteration are those of this one and T, which keeps all rows linear.
struct OrdersModel {
  Program program;
  double unit_ns = 1;      ///< of T, which is the cost
  std::vector<int> out;    ///< per absence the binary of its going out; -1: always
  std::vector<int> start;  ///< per absence the time of its swap-in
  std::vector<int> release;
  std::vector<int> operation_start;       ///< -1 for the first one, at 0
  std::vector<int> copy_start;            ///< per version
  std::vector<std::vector<int>> started;  ///< per absence: whether its swap-in starts in gap first + k at the latest
  int iteration = 0;
};

/// Plans slower than `at_most` are of no use. Absences squared rows.
[[nodiscard]] OrdersModel make_orders_model(const OverlapLedger& ledger, std::chrono::nanoseconds at_most);

/// What a bound on the cost says of every plan's iteration time: Prediction::iteration rounds to the nearest
/// nanosecond, and the solver's times are exact to about 1/100,000.
[[nodiscard]] std::chrono::nanoseconds iteration_bound(const OrdersModel& model, double cost_bound);

/// Writes the decisions into the ledger: who goes out, when each leaves, returns and is written back.
/// With `leaves_early`, bytes may be taken over in the gap right after the last use, by who waits for them then; else
/// in the gap in which they are free.
void decide(const OrdersModel& model, const std::vector<double>& values, bool leaves_early, OverlapLedger& ledger);

}  // namespace swapmm::planning::ilp
