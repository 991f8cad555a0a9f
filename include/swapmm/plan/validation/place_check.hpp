// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/plan.hpp>
#include <swapmm/plan/validation/findings.hpp>
#include <swapmm/plan/validation/happens_before.hpp>
#include <swapmm/plan/validation/tensor_events.hpp>

namespace swapmm::validation {

/// Each place by itself: within the budget, aligned, in one arena (rule 3 of docs/formats.md). Linear.
void check_places(const Trace& trace, const Plan& plan, Findings& findings);

/// No byte belongs to two tensors at a time, whatever the durations are (rules 3 and 6): the tensors that occupy a
/// byte follow one another, each release before the next start. Looks at the tensors that are `sound`. The commands
/// are swept in an order that the plan enforces, so that neighbours on each byte are all that must be compared.
/// n log n in the number of commands.
void check_overlaps(const Trace& trace, const Plan& plan, const HappensBefore& order, const TensorEvents& events,
                    const std::vector<bool>& sound, Findings& findings);

}  // namespace swapmm::validation
