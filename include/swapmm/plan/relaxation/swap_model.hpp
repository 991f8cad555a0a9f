// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include <swapmm/plan/problem/overlap_ledger.hpp>
#include <swapmm/plan/problem/planning_case.hpp>

/// A planning case as the lower bound sees it. Time is divided into 2n parts on a circle: part 2i is the computation of
/// operation i, and part 2i + 1 the stall after it. Boundary k is the start of part k. Parts and boundaries from 2n on
/// belong to the next iteration.
namespace swapmm::planning::relaxation {

/// Means: no window.
inline constexpr std::uint32_t no_window = 0xffffffff;

/// A window: the parts in which an absence's copy in may run, and the boundaries at which its bytes may be off the
/// device, from `first_boundary` to the part of its copy.
struct Window {
  std::uint32_t absence = 0;         ///< position in OverlapLedger::absences
  std::uint32_t first_boundary = 0;  ///< at least 1
  std::uint32_t last_part = 0;       ///< below first_boundary if the next use follows at once
  double bytes = 0;                  ///< bytes of room, rounded up to the alignment
  double copy_in = 0;                ///< nanoseconds
  bool is_arrival = false;           ///< the copy is required; it may begin in the part before first_boundary
  bool lingers = false;              ///< there is no copy in: the value goes, and never returns
  /// Nanoseconds of computation that make the value again, in a stall of the window; infinity: nothing does.
  double again = std::numeric_limits<double>::infinity();

  [[nodiscard]] bool is_empty() const { return last_part < first_boundary; }
  [[nodiscard]] std::uint32_t first_part() const { return is_arrival ? first_boundary - 1 : first_boundary; }
};

/// A value that the device wrote. One copy to the host serves all its windows.
struct WrittenValue {
  double copy_out = 0;           ///< nanoseconds
  std::uint32_t write_part = 0;  ///< the first part in which that copy may run
  std::uint32_t last_part = 0;   ///< the last part before the value is overwritten
  bool must_go = false;          ///< the host reads it
  /// Position in SwapModel::dirty. Windows are in the order of time, and none begins before write_part.
  std::uint32_t first_window = 0;
  std::uint32_t windows = 0;
};

struct SwapModel {
  std::uint32_t operations = 0;
  bool half_duplex = false;
  std::vector<double> duration;      ///< per operation, nanoseconds
  double compute = 0;                ///< their sum
  double room = 0;                   ///< the budget in bytes
  std::vector<double> excess;        ///< per operation: bytes above the budget if every absence stays
  std::vector<Window> clean;         ///< absences of values that the host has
  std::vector<Window> dirty;         ///< the others, by value
  std::vector<WrittenValue> values;  ///< values with a window or a required copy

  [[nodiscard]] std::uint32_t parts() const { return 2 * operations; }
};

/// Makes the model. Linear in the size of the trace, except for sorting the few windows of each value.
[[nodiscard]] SwapModel make_swap_model(const PlanningCase& planning, const OverlapLedger& ledger);

/// Whether copies may be needed at all: more is live than fits somewhere, or a copy is required with any budget.
[[nodiscard]] bool needs_copies(const SwapModel& model);

}  // namespace swapmm::planning::relaxation
