// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include <swapmm/plan/problem/overlap_ledger.hpp>
#include <swapmm/plan/problem/planning_case.hpp>

/// The lower bound's view of a planning case. Time is cut in 2n parts on a circle: part 2i is the computation of
/// operation i, part 2i + 1 the stall behind it. Boundary k is the start of part k. Parts and boundaries at or above 2n
/// are those of the next iteration.
namespace swapmm::planning::relaxation {

/// Where a window's number is expected: none.
inline constexpr std::uint32_t no_window = 0xffffffff;

/// The parts in which an absence's copy in may run, and the boundaries at which its bytes may be off the device: from
/// `first_boundary` on, up to the part of its copy.
struct Window {
  std::uint32_t absence = 0;         ///< in OverlapLedger::absences
  std::uint32_t first_boundary = 0;  ///< at least 1
  std::uint32_t last_part = 0;       ///< below first_boundary where the next use follows at once
  double bytes = 0;                  ///< of room: rounded up to the alignment
  double copy_in = 0;                ///< nanoseconds
  bool is_arrival = false;           ///< the copy is owed; it may begin in the part before first_boundary

  [[nodiscard]] bool is_empty() const { return last_part < first_boundary; }
  [[nodiscard]] std::uint32_t first_part() const { return is_arrival ? first_boundary - 1 : first_boundary; }
};

/// A value that the device wrote. One copy to the host serves all its windows.
struct WrittenValue {
  double copy_out = 0;             ///< nanoseconds
  std::uint32_t write_part = 0;    ///< the first part in which that copy may run
  std::uint32_t last_part = 0;     ///< the last one before the value is overwritten
  bool must_go = false;            ///< the host reads it
  std::uint32_t first_window = 0;  ///< in SwapModel::dirty; in the order of time, none begins before write_part
  std::uint32_t windows = 0;
};

struct SwapModel {
  std::uint32_t operations = 0;
  bool half_duplex = false;
  std::vector<double> duration;      ///< per operation, nanoseconds
  double compute = 0;                ///< their sum
  double room = 0;                   ///< bytes that the budget gives
  std::vector<double> excess;        ///< per operation the bytes above the budget if every absence stays
  std::vector<Window> clean;         ///< absences of values that the host has
  std::vector<Window> dirty;         ///< the others, by value
  std::vector<WrittenValue> values;  ///< those with a window or a copy that is owed

  [[nodiscard]] std::uint32_t parts() const { return 2 * operations; }
};

/// Linear in the size of the trace, but for sorting the few windows of each value.
[[nodiscard]] SwapModel make_swap_model(const PlanningCase& planning, const OverlapLedger& ledger);

/// Whether copies may be needed at all: somewhere more is live than fits, or a copy is owed whatever the budget.
[[nodiscard]] bool needs_copies(const SwapModel& model);

}  // namespace swapmm::planning::relaxation
