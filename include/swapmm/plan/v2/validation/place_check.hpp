// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/v2/plan.hpp>
#include <swapmm/plan/v2/validation/findings.hpp>
#include <swapmm/plan/v2/validation/order.hpp>
#include <swapmm/plan/v2/validation/parts.hpp>

namespace swapmm::v2::validation {

/// Checks each place separately: within its memory, aligned, in one arena (rule 3 of docs/formats.md). Linear.
void check_places(const Plan& plan, const Parts& parts, Findings& findings);

/// Checks that no byte of a memory belongs to two places at the same time, for any durations (rules 3 and 6): those
/// that occupy a byte follow one another, with each release before the next start. Examines only the parts that are
/// `sound`. Commands are processed in an order that the plan enforces, so only consecutive occupations of each byte
/// must be compared. Takes n log n in the number of commands.
void check_overlaps(const Plan& plan, const Parts& parts, const Order& order, const std::vector<bool>& sound,
                    Findings& findings);

}  // namespace swapmm::v2::validation
