// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/v2/plan.hpp>
#include <swapmm/plan/v2/validation/findings.hpp>
#include <swapmm/plan/v2/validation/order.hpp>
#include <swapmm/plan/v2/validation/parts.hpp>

namespace swapmm::v2::validation {

/// Follows each part through as many iterations as it takes until they repeat: which places it has, which values they
/// hold, and whether everything that uses a place has an order (rules 3 to 6 of docs/formats.md, but for addresses).
/// Returns for each part whether it has no violation. Linear in accesses and commands, for each iteration.
[[nodiscard]] std::vector<bool> check_values(const Trace& trace, const Plan& plan, const Parts& parts,
                                             const detail::Engines& engines, const Order& order, Findings& findings);

}  // namespace swapmm::v2::validation
