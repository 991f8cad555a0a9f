// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <vector>

#include <swapmm/base/export.hpp>
#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/plan.hpp>

namespace swapmm {

/// How long everything of an iteration takes; the same in each iteration. Not negative, and with sums below 2^62 ns.
struct StepTimes {
  std::vector<std::chrono::nanoseconds> operations;  ///< by OperationId
  std::vector<std::chrono::nanoseconds> commands;    ///< by CommandId; 0 for allocate and release

  friend bool operator==(const StepTimes&, const StepTimes&) = default;
};

/// What the trace says of its operations, and the machine of its copies. Linear.
[[nodiscard]] SWAPMM_EXPORT StepTimes step_times(const Trace& trace, const Plan& plan);

}  // namespace swapmm
