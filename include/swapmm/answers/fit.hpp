// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <swapmm/answers/as_json.hpp>
#include <swapmm/answers/stall_search.hpp>
#include <swapmm/base/bytes.hpp>
#include <swapmm/base/ids.hpp>
#include <swapmm/ir/liveness.hpp>
#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/machine.hpp>
#include <swapmm/plan/plan.hpp>
#include <swapmm/plan/stalls.hpp>

// Does a program fit into so much memory, and what does it cost?

namespace swapmm::answers {

/// What a trace needs, whatever the plan.
struct Need {
  Liveness liveness;
  std::size_t peak_operation = 0;
  std::size_t largest_operation = 0;
  std::vector<TensorId> largest;           ///< the tensors of the largest bundle, the largest first
  std::vector<TensorId> above_allocation;  ///< used, and larger than any single allocation; the largest first
};

[[nodiscard]] Need find_need(const Trace& trace, const Machine& machine);

/// By how much the largest bundle exceeds the budget.
[[nodiscard]] Bytes shortfall_of(const Need& need, const Machine& machine);

/// The answer no, with what stands in the way; at most `top` tensors in each list.
[[nodiscard]] json::object misfit_as_json(const Trace& trace, const Machine& machine, const Need& need,
                                          std::string_view problem, std::size_t top);

/// The answer yes; at most `top` tensors and stalls in each list.
[[nodiscard]] json::object fit_as_json(const Trace& trace, const Plan& plan, const Need& need, std::string_view planner,
                                       const std::optional<StallEnd>& end, const std::vector<Stall>& stalls,
                                       std::size_t top);

}  // namespace swapmm::answers
