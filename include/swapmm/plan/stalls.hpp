// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <swapmm/base/export.hpp>
#include <swapmm/base/ids.hpp>
#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/plan.hpp>

namespace swapmm {

/// The time for which an operation of a plan keeps the computation waiting.
struct Stall {
  OperationId operation{};           ///< that waits
  std::chrono::nanoseconds time{0};  ///< for which it does
  /// The copy that it waits for in the end: the one that brings a value, or one that makes room. None where it cannot
  /// be told: the stall is that of another iteration than the one looked at.
  std::optional<CommandId> copy;
};

/// The stalls of one iteration in the steady state, the longest first. Cost: that of simulate().
[[nodiscard]] SWAPMM_EXPORT std::vector<Stall> find_stalls(const Trace& trace, const Plan& plan);

/// For a person: what the operation waits for.
[[nodiscard]] SWAPMM_EXPORT std::string describe(const Stall& stall, const Trace& trace, const Plan& plan);

}  // namespace swapmm
