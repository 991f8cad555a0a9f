// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <vector>

#include <swapmm/base/export.hpp>
#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/plan.hpp>

namespace swapmm {

/// The times of all operations and commands, the same in each iteration. Not negative; sums are below 2^62 ns.
struct StepTimes {
  std::vector<std::chrono::nanoseconds> operations;  ///< indexed by OperationId
  std::vector<std::chrono::nanoseconds> commands;    ///< indexed by CommandId; 0 for allocate and release

  friend bool operator==(const StepTimes&, const StepTimes&) = default;
};

/// The times of the operations from the trace, and of the copies from the machine. Linear.
[[nodiscard]] SWAPMM_EXPORT StepTimes step_times(const Trace& trace, const Plan& plan);

}  // namespace swapmm
