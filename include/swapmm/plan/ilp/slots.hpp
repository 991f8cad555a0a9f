// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include <swapmm/plan/ilp/solver/solver.hpp>
#include <swapmm/plan/problem/overlap_ledger.hpp>

namespace swapmm::planning::ilp {

/// How absences are rounded to slots.
enum class Rounding : std::uint8_t {
  outward,  ///< an absence covers each slot whose boundary it contains: a relaxation, for bounds
  inward    ///< an absence covers only the slots that it contains: for decisions. Room may be missing, at a price
};

/// The integer program over slots: it decides which tensors go out over which absences, with copies as flows. It is a
/// relaxation of planning, so its optimum bounds the iteration time of every valid plan from below.
///
/// The circle of the iteration is cut into parts at boundaries. With one slot per operation, these are the start and
/// the end of each operation, and parts are computation and stall in turn. With fewer slots, each has one boundary, at
/// the start of its operation that needs the most bytes; absences are thereby rounded outward. For each boundary and
/// part:
/// - room: the bytes held without absences, minus the bytes that are away, are within the budget;
/// - links: the swap-ins of a part take no longer than the part with its stall, and neither do its write-backs; with
///   half duplex, this holds for their sum;
/// - what is away at a boundary comes back in the parts after it, before its next use;
/// - what is away was written back before, if the device wrote it: once for all absences of a version;
/// - new inputs arrive between available_from and their first use.
///
/// Versions with the same boundaries share flows. Among them, those of equal size share an integer: how many of them go
/// out. Tensors below 1/500 of the budget may go out in part, and are rounded up later. The cost is the stall, plus
/// 1/10,000 of the copies' time so that nothing moves needlessly.
struct SlotModel {
  /// Absences that are alike.
  struct Group {
    int column = 0;                       ///< says how many of them go out
    std::vector<std::uint32_t> absences;  ///< the longest first
  };
  Program program;
  std::vector<Group> groups;
  double compute_ns = 0;
  double unit_ns = 1;  ///< unit of costs
};

/// Makes the model with at most `slots` slots. Its size grows with slots x kinds of absences. For values that are used
/// twice, there are at most slots^2 kinds.
[[nodiscard]] SlotModel make_slot_model(const OverlapLedger& ledger, std::uint32_t slots, Rounding rounding);

/// Turns a lower bound on the program's cost into a lower bound on the iteration time of every plan.
[[nodiscard]] std::chrono::nanoseconds iteration_bound(const SlotModel& model, double cost_bound);

/// For each absence, whether its tensor stays if the program's columns have these values.
[[nodiscard]] std::vector<bool> decide_stays(const SlotModel& model, const OverlapLedger& ledger,
                                             const std::vector<double>& values);

}  // namespace swapmm::planning::ilp
