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

/// A time in which the value of a tensor is only on the host, although an operation still needs it.
struct PlannedAbsence {
  TensorId tensor{};                    ///< the tensor
  CommandId release{};                  ///< the command with which it leaves the device
  CommandId swap_in{};                  ///< the command with which it comes back
  bool crosses_wrap = false;            ///< true if it comes back with a command of the next iteration
  std::chrono::nanoseconds time{0};     ///< from the end of `release` to the start of `swap_in`
  std::optional<OperationId> last_use;  ///< the operation that used it before it left
  /// The operation that needs it next. If that is in the next iteration, it is not after last_use.
  std::optional<OperationId> next_use;
};

/// Finds the absences of a valid plan in the steady state, longest first. New values of inputs, and values that are
/// dead while they are away, do not count. If iterations differ, the times are those of one of them. Costs as much as
/// simulate() and validate().
[[nodiscard]] SWAPMM_EXPORT std::vector<PlannedAbsence> find_absences(const Trace& trace, const Plan& plan);

/// The host memory that a plan needs: the bytes of each tensor that it copies, and twice the bytes of inputs, because
/// the host fills the next value while the device still reads the current one. Tensors that never move need no host
/// memory. Linear.
[[nodiscard]] SWAPMM_EXPORT Bytes host_bytes(const Trace& trace, const Plan& plan);

}  // namespace swapmm
