// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include <swapmm/ir/liveness.hpp>
#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/plan.hpp>

#include "planning.hpp"

namespace swapmm::cli {

/// From which budget on swapping costs no time.
struct StallEnd {
  std::optional<Bytes> budget;         ///< to 2 % of the peak; none: even with all of the memory there was no plan
  bool first_that_fits = false;        ///< with less there is no plan at all
  std::chrono::nanoseconds always{0};  ///< what an iteration waits however large the budget: for inputs to come in
  int plans = 0;                       ///< made to find it
};

/// Bisection over budgets, by the planner. A budget is enough where an iteration takes at most 0.1 % longer than with
/// more memory than all tensors together need. `plan` is what the planner made for its own budget.
[[nodiscard]] StallEnd find_stall_end(const Trace& trace, const Plan& plan, const Liveness& liveness,
                                      const std::string& planner, TimeLimit limit, Progress& progress);

}  // namespace swapmm::cli
