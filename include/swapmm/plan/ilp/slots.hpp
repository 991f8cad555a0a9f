// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include <swapmm/plan/ilp/solver.hpp>
#include <swapmm/plan/problem/overlap_ledger.hpp>

namespace swapmm::planning::ilp {

/// How absences are cut to slots.
enum class Rounding : std::uint8_t {
  outward,  ///< over every slot whose boundary they are over: a relaxation, for bounds
  inward    ///< over the slots that they are over from end to end: for choosing who goes out. Room may lack, at a price
};

/// The integer program over slots: who goes out over which absence, with copies as flows. A relaxation of planning, so
/// its optimum bounds the iteration time of every valid plan from below.
///
/// The circle of the iteration is cut into parts at boundaries. With a slot per operation these are the start and the
/// end of each operation, and parts are computation and stall in turn. With fewer slots, each has one boundary, at the
/// start of its operation that needs the most bytes; absences are thereby rounded outward. Per boundary and part:
/// - room: what is held without absences, less what is away, is within the budget;
/// - what comes back in a part, and what is written back in it, takes no longer than the part with its stall; with
///   half duplex, both together;
/// - what is away at a boundary comes back in the parts after it, before its next use;
/// - what is away was written back before, if the device wrote it: once for all absences of a version;
/// - new inputs come between available_from and their first use.
/// Versions alike in all this (the same boundaries) share flows, and of those the equally large ones an integer: how
/// many go out. Tensors below 1/500 of the budget may go in part: they are rounded up later.
/// The cost is the stall, and 1/10,000 of the copies' time, so that nothing moves in vain.
struct SlotModel {
  /// Absences that are alike, and how many of them go out: in that column.
  struct Group {
    int column = 0;
    std::vector<std::uint32_t> absences;  ///< the longest first
  };
  Program program;
  std::vector<Group> groups;
  double compute_ns = 0;
  double unit_ns = 1;  ///< of costs
};

/// With up to that many slots. Grows with slots x kinds of absences, of which there are slots^2 at most for values that
/// are used twice.
[[nodiscard]] SlotModel make_slot_model(const OverlapLedger& ledger, std::uint32_t slots, Rounding rounding);

/// What a bound on the program's cost says of every plan's iteration time.
[[nodiscard]] std::chrono::nanoseconds iteration_bound(const SlotModel& model, double cost_bound);

/// Per absence whether its tensor stays, for values of the program's columns.
[[nodiscard]] std::vector<bool> decide_stays(const SlotModel& model, const OverlapLedger& ledger,
                                             const std::vector<double>& values);

}  // namespace swapmm::planning::ilp
