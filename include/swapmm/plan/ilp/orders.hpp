// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include <swapmm/plan/ilp/solver/solver.hpp>
#include <swapmm/plan/problem/overlap_ledger.hpp>

namespace swapmm::planning::ilp {

/// The integer program over times and orders. It is exact except for the packing of offsets: its optimum is the least
/// iteration time of any plan, if free bytes may lie anywhere. For few absences.
///
/// Slots cannot be exact: a copy may span operations, and start or end within one. Here every start has a time of its
/// own, the same in each iteration. If the iterations of a plan take T on average, its waits still hold when each start
/// repeats after T, so one T and one time for each start are enough. The order of two copies on a link is a
/// disjunction. A swap-in starts in one gap between operations, so that which tensors are on the device at its start
/// and at each operation's start is a choice among few. The bytes in use are checked only at those starts: between
/// them, bytes are only released. Times of the next iteration are those of this one plus T, which keeps all rows
/// linear.
///
/// A value that lingers is released when it may be lost, or before, after its copy to the host, if it goes out. Its
/// tensor is away then until it is written again.
struct OrdersModel {
  Program program;
  double unit_ns = 1;      ///< unit of T, which is the cost
  std::vector<int> out;    ///< per absence: the binary for whether its tensor goes out; -1: it always does
  std::vector<int> start;  ///< per absence: the start of its swap-in; -1: it lingers, and there is none
  std::vector<int> release;
  std::vector<int> operation_start;       ///< per operation; -1 for the first one, which starts at 0
  std::vector<int> copy_start;            ///< per version: the start of its swap-out
  std::vector<std::vector<int>> started;  ///< per absence: whether its swap-in starts in gap first + k or before
  int iteration = 0;
  /// A decision, and what it is about: absences by their positions, versions by theirs behind all absences.
  struct Choice {
    int column = 0;
    std::uint32_t one = no_absence;
    std::uint32_t other = no_absence;
  };
  std::vector<Choice> choices;  ///< all integers
};

/// For each absence whether going out over it may save anything. It does not if everything that is live fits at every
/// operation from the use before to the use after: then the tensor can stay, whatever else moves. (Between two
/// operations that follow each other it may save something: another tensor comes in its place while a third one is
/// still copied out.) Arrivals always count.
[[nodiscard]] std::vector<bool> may_save(const OverlapLedger& ledger);

/// Makes the model. Tensors stay over absences that cannot save anything. Of tensors with the same size and uses, one
/// goes out first, for exchanging them changes nothing. It excludes plans slower than `at_most`. The number of rows
/// grows with the square of the number of absences.
[[nodiscard]] OrdersModel make_orders_model(const OverlapLedger& ledger, std::chrono::nanoseconds at_most);

/// Turns a lower bound on the cost into a lower bound on the iteration time of every plan. Takes into account that
/// Prediction::iteration is rounded to the nearest nanosecond, and that the solver's times are exact to about
/// 1/100,000.
[[nodiscard]] std::chrono::nanoseconds iteration_bound(const OrdersModel& model, double cost_bound);

}  // namespace swapmm::planning::ilp
