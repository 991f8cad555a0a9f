// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/json/object.hpp>

#include <swapmm/answers/comparison.hpp>
#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/planner.hpp>
#include <swapmm/plan/v2/plan.hpp>

#include "machine_options.hpp"
#include "planning.hpp"

// Answers about plans of version 2 of the formats: many memories, engines and links.

namespace swapmm::cli {

using answers::Predicted;

/// The machine that options describe as one of version 2. `text` is machine_text(). If that is of version 2, no other
/// options may be given, but for a budget if `takes_budget`, which is then not looked at. Failures: wrong use, or what
/// the file gives.
[[nodiscard]] v2::Machine machine_for_many(const MachineOptions& options, const Trace& trace, std::string_view text,
                                           bool takes_budget);

/// Plans for it, with a limit and progress as run_planner() has them. A plan that v2::validate() refuses is a Problem.
[[nodiscard]] Result<v2::Plan> plan_for_many(const std::string& planner, const Trace& trace, const v2::Machine& machine,
                                             TimeLimit limit, const Ways& ways, Progress& progress);

/// The plan, or a Problem in the place of one that v2::validate() refuses.
[[nodiscard]] Result<v2::Plan> checked(const std::string& planner, const Trace& trace, Result<v2::Plan> plan);

/// What a plan takes, copies and occupies, a line each.
void print_prediction(const v2::Plan& plan);
/// What it copies and occupies.
void print_links_and_memories(const v2::Plan& plan);
/// What a plan takes, copies and occupies as JSON: times, bytes of each link, peak of each memory.
[[nodiscard]] boost::json::object to_json(const v2::Plan& plan);

/// What it does besides copies: the name of each way, and a text. None where values are only copied.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> ways_in_words(const Trace& trace, const v2::Plan& plan);
/// The same, a line each.
void print_ways(const Trace& trace, const v2::Plan& plan);

/// What a planner's plan for a trace of version 2 does on a machine of version 1.
[[nodiscard]] Predicted predict_in_version_1(const std::string& planner, const Trace& trace, const Machine& machine,
                                             TimeLimit limit, const Ways& ways, Progress& progress);

/// The first line of an answer: trace, planner and machine.
void print_title(const Trace& trace, const v2::Plan& plan);

/// Prints what a valid plan does and why it takes longer than its operations, at most `most` lines of each list, or all
/// of it as JSON.
void explain_many(const Trace& trace, v2::Plan plan, std::size_t most, bool json);

}  // namespace swapmm::cli
