// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/v2/explain.hpp>
#include <swapmm/plan/v2/long_run/turn.hpp>
#include <swapmm/plan/v2/plan.hpp>
#include <swapmm/plan/v2/simulation/parts.hpp>

namespace swapmm::v2::explaining {

/// The absences that begin in the last iteration of a turn, longest first. New values of inputs, and values that are
/// dead while they are away, do not count.
[[nodiscard]] std::vector<PlannedAbsence> find_absences(const Trace& trace, const Plan& plan,
                                                        const simulation::Parts& parts, const long_run::Turn& turn);

}  // namespace swapmm::v2::explaining
