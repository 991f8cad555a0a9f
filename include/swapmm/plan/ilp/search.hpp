// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <swapmm/base/result.hpp>
#include <swapmm/plan/ilp.hpp>
#include <swapmm/plan/ilp/solver/solver.hpp>

namespace swapmm::planning::ilp {

/// plan_by_ilp() with any solver. Its answers are checked: if it fails, or its answer cannot be right, the plan is the
/// best one found without it, and a note says so.
[[nodiscard]] Result<IlpResult> plan_by(const Solver& solver, const Trace& trace, const Machine& machine,
                                        const IlpOptions& options, const PlanningOptions& limits);

}  // namespace swapmm::planning::ilp
