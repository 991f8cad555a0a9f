// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include <swapmm/base/result.hpp>
#include <swapmm/plan/ilp.hpp>
#include <swapmm/plan/planner.hpp>

// Planners as they are written on the command line: NAME, or NAME:OPTION=VALUE:OPTION=VALUE for planners with options.

namespace swapmm::cli {

/// The name in front of the options.
[[nodiscard]] std::string_view name_of_planner(std::string_view text);

/// What the words say behind "ilp": "ilp:gap=1%:slots=60". A Problem names the option that is unknown, has no such
/// value, is given twice or contradicts another one.
[[nodiscard]] Result<IlpOptions> ilp_options_of(std::string_view text);
/// The planner with these options. A Problem, too, if the command was built without the solver.
[[nodiscard]] Result<NamedPlanner> ilp_planner_of(std::string_view text);

/// The options of `ilp` for --help, a line each.
[[nodiscard]] std::string ilp_option_lines();

}  // namespace swapmm::cli
