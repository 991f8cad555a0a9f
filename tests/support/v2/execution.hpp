// SPDX-License-Identifier: Apache-2.0
#pragma once

// Runs a plan of version 2 event by event on values, and says what went wrong. Written from docs/formats.md alone: it
// shares nothing with the validator and the simulator. Elements take random times, so copies do not share capacities
// here.

#include <cstddef>
#include <random>
#include <string>
#include <vector>

#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/v2/plan.hpp>

namespace swapmm::test::general {

/// Runs so many iterations. The plan's indices must be in range, nothing else of it need be right. Returns the faults:
/// wrong values, accesses that disturb each other, bytes of two parts, places that are not there, that are not allowed,
/// or that differ at the end; a deadlock. Empty: everything went right.
[[nodiscard]] std::vector<std::string> execute(std::mt19937_64& random, const Trace& trace,
                                               const swapmm::v2::Plan& plan, std::size_t iterations);

}  // namespace swapmm::test::general
