// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>

#include <swapmm/base/export.hpp>
#include <swapmm/base/result.hpp>
#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/machine.hpp>

namespace swapmm {

/// Effort for lower_bound(), in steps, so that the same input gives the same bound. Every value gives a valid bound.
struct BoundEffort {
  std::size_t groups = 48;  ///< largest number of groups of operations
  /// Largest number of copy options in one coarse program. Determines the time that a solution takes.
  std::size_t options = 80'000;
  std::size_t rounds = 8;  ///< rounds of solving and refining. 0: the bound is only the time of the computation

  std::size_t first_groups = 16;      ///< number of groups in the first round
  std::size_t exact_operations = 24;  ///< traces up to this size have one program of all their parts, without groups
  double least_gain = 1e-5;           ///< part of the bound; a third of the rounds may gain less in a row
  std::size_t input_stalls = 8;       ///< number of stalls before the largest inputs that get a group of their own
  // Places at which the grid is refined. Each can be switched off.
  bool cuts_overrun_room = true;     ///< around the operation of a group that holds more bytes than there is room
  std::size_t overrun_links = 3;     ///< number of groups in which copies have less time than the group; worst first
  std::size_t full_groups = 2;       ///< number of groups with full links; longest first
  bool cuts_changing_prices = true;  ///< through groups whose prices differ from their neighbours
  // How the prices of a solution are turned into a bound.
  int stall_rounds = 2;                    ///< rounds of giving the time of stalls to the busier link
  std::size_t classes = 12;                ///< number of classes of windows, by the cost of their copies per byte
  std::size_t exact_classes = 200;         ///< the same for traces up to exact_operations
  std::size_t classes_of_long_traces = 3;  ///< the same for traces above long_trace
  std::size_t long_trace = 20'000;         ///< in operations
};

/// Returns a time such that no valid plan for this trace and machine has a shorter iteration. Returns a Problem if a
/// bundle is larger than the budget.
[[nodiscard]] SWAPMM_EXPORT Result<std::chrono::nanoseconds> lower_bound(const Trace& trace, const Machine& machine,
                                                                         const BoundEffort& effort = {});

}  // namespace swapmm
