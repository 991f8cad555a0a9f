// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>

#include <swapmm/base/export.hpp>
#include <swapmm/base/result.hpp>
#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/machine.hpp>

namespace swapmm {

/// Effort for lower_bound(), in steps, so that the same input gives the same bound.
struct BoundEffort {
  std::size_t groups = 48;  ///< largest number of groups of operations
  std::size_t options =
      80'000;  ///< largest number of copy options in one coarse program; determines the time of one solution
  std::size_t rounds = 8;  ///< number of rounds of solving and refining
};

/// A time such that no valid plan for this trace and machine has a shorter iteration. A Problem if a bundle is larger
/// than the budget.
[[nodiscard]] SWAPMM_EXPORT Result<std::chrono::nanoseconds> lower_bound(const Trace& trace, const Machine& machine,
                                                                         const BoundEffort& effort = {});

}  // namespace swapmm
