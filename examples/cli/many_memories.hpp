// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <boost/json/object.hpp>

#include <swapmm/plan/planner.hpp>
#include <swapmm/plan/v2/plan.hpp>
#include <swapmm/plan/validate.hpp>

#include "command_line.hpp"
#include "files.hpp"

// Machines and plans of version 2 of the formats: many memories, engines and links.

namespace swapmm::cli {

/// Whether a text says that it is of version 2.
[[nodiscard]] bool is_version_2(std::string_view text);

/// A machine or a plan of version 2, or one of version 1 as version 2. Failures as of load_machine().
[[nodiscard]] v2::Machine load_machine_v2(const std::string& path);
[[nodiscard]] v2::Plan plan_v2_from(const std::string& path, std::string_view text);

/// What a plan takes, copies and occupies, a line each.
void print_prediction(const v2::Plan& plan);
/// The same as JSON: times, bytes of each link, peak of each memory.
[[nodiscard]] boost::json::object to_json(const v2::Plan& plan);

}  // namespace swapmm::cli
