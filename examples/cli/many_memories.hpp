// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/json/object.hpp>

#include <swapmm/plan/v2/plan.hpp>

// Answers about plans of version 2 of the formats: many memories, engines and links.

namespace swapmm::cli {

/// What a plan takes, copies and occupies, a line each.
void print_prediction(const v2::Plan& plan);
/// The same as JSON: times, bytes of each link, peak of each memory.
[[nodiscard]] boost::json::object to_json(const v2::Plan& plan);

}  // namespace swapmm::cli
