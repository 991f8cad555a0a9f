// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <swapmm/answers/planning.hpp>
#include <swapmm/base/result.hpp>
#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/machine.hpp>
#include <swapmm/plan/plan.hpp>
#include <swapmm/plan/planners.hpp>

#include "command_line.hpp"
#include "progress.hpp"

namespace swapmm::cli {

/// The planners that the command knows: planners(), `checkpoint-units`, and `ilp` if it was built with COIN-OR Cbc.
[[nodiscard]] std::span<const NamedPlanner> known_planners();

/// A planner as the command line has it: a name of known_planners(), with options if it is `ilp`
/// (planner_options.hpp).
[[nodiscard]] Result<NamedPlanner> planner_of(std::string_view text);

/// Runs planner_of() the text, with a steady clock behind PlanningOptions::go_on where there is a limit. A plan
/// that validate() refuses is a Problem, too.
using answers::run_planner;
[[nodiscard]] Planned run_planner(std::string_view planner, const Trace& trace, const Machine& machine, TimeLimit limit,
                                  Progress& progress);

/// Prints notes on stderr, a line each, where stdout is for something else.
void tell_notes(const std::vector<std::string>& notes);

/// The text, if planner_of() knows it; a Problem lists the planners or the options that there are.
[[nodiscard]] Result<std::string> parse_planner(std::string_view text);
/// Such texts between commas, or "all" for planners().
[[nodiscard]] Result<std::vector<std::string>> parse_planners(std::string_view text);

/// Ends the command if the planner plans only for machines and traces of version 1.
void check_plans_for_many(std::string_view planner);

/// Adds --planner and --time-limit.
void add_planner_options(CLI::App& command, std::string& planner, TimeLimit& limit);

/// Adds --ways.
void add_ways_option(CLI::App& command, Ways& ways);

/// The names of all planners: "per-operation, on-demand, ...".
[[nodiscard]] std::string planner_names();
/// The lines of --help about the options of planners.
[[nodiscard]] std::string planner_option_help();

}  // namespace swapmm::cli
