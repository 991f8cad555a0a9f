// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/plan.hpp>
#include <swapmm/plan/validation/findings.hpp>
#include <swapmm/plan/validation/happens_before.hpp>
#include <swapmm/plan/validation/tensor_events.hpp>

namespace swapmm::validation {

/// Follows each tensor through two iterations from `initial`: where it is, which of its copies hold its value, and
/// who may still want it (rules 3 to 6 of docs/formats.md but for addresses). Returns for each tensor whether
/// nothing was found: then its commands have one order, and each place it takes is given back. Linear.
[[nodiscard]] std::vector<bool> check_values(const Trace& trace, const Plan& plan, const HappensBefore& order,
                                             const TensorEvents& events, Findings& findings);

}  // namespace swapmm::validation
