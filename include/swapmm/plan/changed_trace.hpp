// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <swapmm/base/export.hpp>
#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/plan.hpp>

namespace swapmm {

/// The program with its moves as operations: what a compiler would run that has a plan. Each swap_out is an operation
/// "reduce NAME", which reads the tensor and makes its reduced form, a tensor of 0 bytes; each swap_in is an operation
/// "restore NAME", which makes the tensor of its reduced form. They have the times of the copies, and stand where what
/// the command waits for has ended. The first arrival of an input is none: the host gives the value there. The host
/// reads reduced forms.
///
/// The trace passes check_trace(). If its operations run one by one, its live bytes are never more than the plan's
/// device budget, with sizes rounded up to the machine's alignment. `plan` must be valid for the trace. Linear, except
/// for sorting the commands.
[[nodiscard]] SWAPMM_EXPORT Trace changed_trace(const Trace& trace, const Plan& plan);

}  // namespace swapmm
