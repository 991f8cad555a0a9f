// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>

#include <swapmm/base/export.hpp>
#include <swapmm/base/result.hpp>
#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/machine.hpp>

namespace swapmm {

/// How far the bound is refined, in steps: the same input gives the same bound.
struct BoundEffort {
  std::size_t groups = 48;       ///< of operations that are taken as one; no finer once there are so many
  std::size_t options = 80'000;  ///< for copies, in one coarse program: what one of its solutions takes goes with them
  std::size_t rounds = 8;        ///< of solving and refining
};

/// No valid plan for this trace and machine has a shorter iteration. A Problem where one bundle is larger than the
/// budget.
[[nodiscard]] SWAPMM_EXPORT Result<std::chrono::nanoseconds> lower_bound(const Trace& trace, const Machine& machine,
                                                                         const BoundEffort& effort = {});

}  // namespace swapmm
