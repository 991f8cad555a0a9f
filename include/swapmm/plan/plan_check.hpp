// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <swapmm/base/result.hpp>
#include <swapmm/plan/plan.hpp>

namespace swapmm {

/// Whether a command of that kind says where on the device its tensor comes to lie.
[[nodiscard]] constexpr bool has_place(CommandKind kind) {
  return kind == CommandKind::allocate || kind == CommandKind::swap_in;
}

/// What can be said of a plan without its trace: the trace's digest has the form of one, the machine passes
/// check_machine(), waits refer to commands that exist, offsets are aligned and within the budget, and no tensor is on
/// the device twice at the start. Whether the plan is valid, validate() says. Linear in the size of the plan.
[[nodiscard]] Check check_plan(const Plan& plan);

}  // namespace swapmm
