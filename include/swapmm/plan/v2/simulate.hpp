// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <vector>

#include <swapmm/base/bytes.hpp>
#include <swapmm/base/export.hpp>
#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/simulate.hpp>
#include <swapmm/plan/v2/plan.hpp>

namespace swapmm::v2 {

/// A simulated iteration in the long run. Times count from the end of the iteration before.
struct Simulation {
  std::chrono::nanoseconds iteration{0};  ///< long-run mean, rounded to the nearest nanosecond; see longest_iteration
  std::chrono::nanoseconds compute{0};    ///< the largest sum of durations of one engine's operations
  std::vector<Bytes> links;               ///< bytes copied over each link in an iteration
  std::vector<Bytes> peaks;               ///< most bytes occupied in each memory; sizes rounded up; 0 without limit
  std::vector<Span> operations;           ///< times in the last simulated iteration
  std::vector<Span> commands;             ///< the same
};

/// Simulates a valid plan by the timing rules of docs/formats.md ("Version 2") until it repeats itself, or for 1,000
/// iterations. Copies that share capacities get max-min fair rates. Takes, in each iteration, n log n for n elements,
/// and for each beginning and end of a copy the product of the copies and capacities that are in use then.
[[nodiscard]] SWAPMM_EXPORT Simulation simulate(const Trace& trace, const Plan& plan);

/// The ends of the first `iterations` iterations. An iteration ends when all its operations have ended. Everything of
/// the iteration before has ended at time 0. No value is above longest_iteration.
[[nodiscard]] SWAPMM_EXPORT std::vector<std::chrono::nanoseconds> iteration_ends(const Trace& trace, const Plan& plan,
                                                                                 std::size_t iterations);

}  // namespace swapmm::v2
