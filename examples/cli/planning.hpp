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

/// The planners that the command knows: planners(), and `ilp` if it was built with COIN-OR Cbc.
[[nodiscard]] std::span<const NamedPlanner> known_planners();

/// Runs a planner of known_planners(), with a steady clock behind PlanningOptions::go_on where there is a limit. A plan
/// that validate() refuses is a Problem, too.
using answers::run_planner;
[[nodiscard]] Planned run_planner(std::string_view name, const Trace& trace, const Machine& machine, TimeLimit limit,
                                  Progress& progress);

/// A name of known_planners(); a Problem lists them.
[[nodiscard]] Result<std::string> parse_planner(std::string_view name);
/// Names between commas, or "all" for planners().
[[nodiscard]] Result<std::vector<std::string>> parse_planners(std::string_view text);

/// Adds --planner and --time-limit.
void add_planner_options(CLI::App& command, std::string& planner, TimeLimit& limit);

/// The names of all planners: "per-operation, on-demand, ...".
[[nodiscard]] std::string planner_names();

}  // namespace swapmm::cli
