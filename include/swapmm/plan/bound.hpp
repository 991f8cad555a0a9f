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
  std::size_t groups = 48;       ///< of operations that are taken as one; no finer once there are so many
  std::size_t options = 80'000;  ///< for copies, in one coarse program: what one of its solutions takes goes with them
  std::size_t rounds = 8;        ///< of solving and refining. 0: the bound is the time of the computation alone

  std::size_t first_groups = 16;      ///< of the first round
  std::size_t exact_operations = 24;  ///< traces up to here have one program of all their parts, without groups
  double least_gain = 1e-5;           ///< part of the bound; a third of the rounds may gain less in a row
  std::size_t input_stalls = 8;       ///< stalls with a group of their own: those before the largest inputs
  // Where a finer grid is cut. Each can be left out.
  bool cuts_overrun_room = true;     ///< around the operation of a group that holds more than there is room
  std::size_t overrun_links = 3;     ///< groups that copies have less time in than it seems, the worst first
  std::size_t full_groups = 2;       ///< groups whose links are full, the longest first
  bool cuts_changing_prices = true;  ///< through groups that differ in prices from their neighbours
  // How the prices of a solution are turned into a bound.
  int stall_rounds = 2;                    ///< of giving the time of stalls to the busier link
  std::size_t classes = 12;                ///< of windows by what their copies cost for each byte
  std::size_t exact_classes = 200;         ///< of traces up to exact_operations
  std::size_t classes_of_long_traces = 3;  ///< of traces above the next number
  std::size_t long_trace = 20'000;         ///< operations
};

/// A time such that no valid plan for this trace and machine has a shorter iteration. A Problem if a bundle is larger
/// than the budget.
[[nodiscard]] SWAPMM_EXPORT Result<std::chrono::nanoseconds> lower_bound(const Trace& trace, const Machine& machine,
                                                                         const BoundEffort& effort = {});

}  // namespace swapmm
