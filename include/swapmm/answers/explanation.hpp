// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <string_view>
#include <vector>

#include <swapmm/answers/as_json.hpp>
#include <swapmm/answers/planning.hpp>
#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/explain.hpp>
#include <swapmm/plan/plan.hpp>
#include <swapmm/plan/stalls.hpp>
#include <swapmm/plan/validate.hpp>

// What a plan does: what it takes, which operations wait and why, which tensors are out and when, and whether it is
// valid.

namespace swapmm::answers {

/// What a valid plan takes, with a bound: all of it computed anew.
[[nodiscard]] Prediction prediction_of(const Trace& trace, const Plan& plan);

/// At most `top` stalls and absences.
[[nodiscard]] json::object explanation_as_json(const Trace& trace, const Plan& plan, const Prediction& prediction,
                                               const std::vector<Stall>& stalls,
                                               const std::vector<PlannedAbsence>& absences, std::size_t top);

/// What a planner made, without the plan itself. There is a plan.
[[nodiscard]] json::object plan_as_json(const Trace& trace, const Planned& planned, std::string_view planner);

/// The rules of docs/formats.md by their numbers, in a few words.
[[nodiscard]] std::string_view name_of_rule(int rule);

/// Whether a plan is valid, and what is wrong with it.
[[nodiscard]] json::object violations_as_json(const std::vector<Violation>& violations);

}  // namespace swapmm::answers
