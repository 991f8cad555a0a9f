// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/plan.hpp>
#include <swapmm/plan/validation/findings.hpp>
#include <swapmm/plan/validation/happens_before.hpp>
#include <swapmm/plan/validation/tensor_events.hpp>

namespace swapmm::validation {

/// Checks each place separately: within the budget, aligned, in one arena (rule 3 of docs/formats.md). Linear.
void check_places(const Trace& trace, const Plan& plan, Findings& findings);

/// Checks that no byte belongs to two tensors at the same time, for any durations (rules 3 and 6): the tensors that
/// occupy a byte follow one another, with each release before the next start. Examines only tensors that are `sound`.
/// Commands are processed in an order that the plan enforces, so only consecutive occupations of each byte must be
/// compared. Takes n log n in the number of commands.
void check_overlaps(const Trace& trace, const Plan& plan, const HappensBefore& order, const TensorEvents& events,
                    const std::vector<bool>& sound, Findings& findings);

}  // namespace swapmm::validation
