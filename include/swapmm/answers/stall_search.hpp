// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>

#include <swapmm/answers/planning.hpp>
#include <swapmm/base/bytes.hpp>
#include <swapmm/ir/liveness.hpp>
#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/plan.hpp>

namespace swapmm::answers {

/// From which budget on swapping costs no time.
struct StallEnd {
  std::optional<Bytes> budget;         ///< to 2 % of the peak; none: even with all of the memory there was no plan
  bool first_that_fits = false;        ///< with less there is no plan at all
  std::chrono::nanoseconds always{0};  ///< what an iteration waits however large the budget: for inputs to come in
  int plans = 0;                       ///< made to find it
};

/// Bisection over budgets, by `plan_on`. A budget is enough where an iteration takes at most 0.1 % longer than with
/// more memory than all tensors together need. `plan` is the plan for its own budget.
[[nodiscard]] StallEnd find_stall_end(const Trace& trace, const Plan& plan, const Liveness& liveness,
                                      const PlanOn& plan_on, Watcher& watcher);

}  // namespace swapmm::answers
