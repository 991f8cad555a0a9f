// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <swapmm/base/export.hpp>
#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/v2/plan.hpp>
#include <swapmm/plan/validate.hpp>

namespace swapmm::v2 {

/// Checks that `plan` is valid for `trace`, no matter how long operations and commands take. Returns all violations;
/// empty for a valid plan. `rule` is the number in docs/formats.md ("Version 2"), 2 to 7, or 0 for errors in the
/// structure. Shares no code with planners and simulator. Stops after 100 violations. About linear in the size of trace
/// and plan, times the number of engines that the plan uses.
[[nodiscard]] SWAPMM_EXPORT std::vector<Violation> validate(const Trace& trace, const Plan& plan);

}  // namespace swapmm::v2
