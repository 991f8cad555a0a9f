// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <vector>

#include <swapmm/base/bytes.hpp>
#include <swapmm/base/export.hpp>
#include <swapmm/base/ids.hpp>
#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/plan.hpp>

namespace swapmm {

/// A time in which the value of a tensor is on the host alone, though an operation still needs it.
struct PlannedAbsence {
  TensorId tensor{};                    ///< whose value
  CommandId release{};                  ///< with which it leaves the device
  CommandId swap_in{};                  ///< with which it comes back
  bool crosses_wrap = false;            ///< it comes back with a command of the next iteration
  std::chrono::nanoseconds time{0};     ///< from the end of `release` to the start of `swap_in`
  std::optional<OperationId> last_use;  ///< the operation that used it before it left
  std::optional<OperationId>
      next_use;  ///< the one that needs it; not after last_use where that is in the next iteration
};

/// The absences of a valid plan in the steady state, the longest first. The values that inputs get anew, and what is
/// dead while it is away, are none. Where iterations differ, the times are those of one of them. Cost: that of
/// simulate() and validate().
[[nodiscard]] SWAPMM_EXPORT std::vector<PlannedAbsence> find_absences(const Trace& trace, const Plan& plan);

/// Host memory that a plan needs: the bytes of each tensor that it copies, and twice those of inputs, of which the host
/// fills the next value while the device still reads this one. What never moves keeps no host copy. Linear.
[[nodiscard]] SWAPMM_EXPORT Bytes host_bytes(const Trace& trace, const Plan& plan);

}  // namespace swapmm
