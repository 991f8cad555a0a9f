// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/plan.hpp>
#include <swapmm/plan/validation/findings.hpp>
#include <swapmm/plan/validation/happens_before.hpp>
#include <swapmm/plan/validation/tensor_events.hpp>

namespace swapmm::validation {

/// Follows each tensor through two iterations from `initial`: where it is, which of its copies hold its value, and what
/// may still need the value (rules 3 to 6 of docs/formats.md, except for addresses). Returns for each tensor whether it
/// has no violation. In that case its commands have one order, and each place that it takes is released. Linear.
[[nodiscard]] std::vector<bool> check_values(const Trace& trace, const Plan& plan, const HappensBefore& order,
                                             const TensorEvents& events, Findings& findings);

}  // namespace swapmm::validation
