// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include <boost/json/object.hpp>

#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/v2/plan.hpp>

// Answers about plans of version 2 of the formats: many memories, engines and links.

namespace swapmm::cli {

/// What a plan takes, copies and occupies, a line each.
void print_prediction(const v2::Plan& plan);
/// What it copies and occupies.
void print_links_and_memories(const v2::Plan& plan);
/// What a plan takes, copies and occupies as JSON: times, bytes of each link, peak of each memory.
[[nodiscard]] boost::json::object to_json(const v2::Plan& plan);

/// The first line of an answer: trace, planner and machine.
void print_title(const Trace& trace, const v2::Plan& plan);

/// Prints what a valid plan does and why it takes longer than its operations, at most `most` lines of each list, or all
/// of it as JSON.
void explain_many(const Trace& trace, v2::Plan plan, std::size_t most, bool json);

}  // namespace swapmm::cli
