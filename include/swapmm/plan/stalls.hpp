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

/// A stall: an operation of a plan waits for a copy.
struct Stall {
  OperationId operation{};           ///< the operation that waits
  std::chrono::nanoseconds time{0};  ///< how long it waits
  /// The copy that it finally waits for: one that brings a value, or one that makes room. None if the stall belongs to
  /// another iteration than the examined one.
  std::optional<CommandId> copy;
};

/// Finds the stalls of one iteration in the steady state, longest first. Costs as much as simulate().
[[nodiscard]] SWAPMM_EXPORT std::vector<Stall> find_stalls(const Trace& trace, const Plan& plan);

/// Describes for people what the operation waits for.
[[nodiscard]] SWAPMM_EXPORT std::string describe(const Stall& stall, const Trace& trace, const Plan& plan);

}  // namespace swapmm
