// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include <swapmm/base/bytes.hpp>
#include <swapmm/base/export.hpp>
#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/plan.hpp>
#include <swapmm/plan/step_times.hpp>

namespace swapmm {

/// The time in which something ran.
struct Span {
  std::chrono::nanoseconds start{0};  ///< start time
  std::chrono::nanoseconds end{0};    ///< end time; not before start
};

/// A simulated iteration in the steady state. Times count from the end of the last operation of the iteration before.
struct Simulation {
  std::chrono::nanoseconds iteration{0};  ///< long-run mean, rounded to the nearest nanosecond; see longest_iteration
  std::chrono::nanoseconds compute{0};    ///< sum of the durations of the operations
  Bytes h2d;                              ///< bytes copied to the device
  Bytes d2h;                              ///< bytes copied to the host
  Bytes peak;                             ///< largest number of bytes occupied at one time; sizes rounded up
  std::vector<Span> operations;           ///< times in the last simulated iteration
  std::vector<Span> commands;             ///< the same; negative if a command ran in the iteration before
};

/// The longest predicted time (146 years). It is also the prediction if an iteration, with the copies that run after
/// it, takes longer.
inline constexpr std::chrono::nanoseconds longest_iteration{(std::int64_t{1} << 62) - 1};

/// Simulates a valid plan by the timing rules of docs/formats.md until it repeats itself (or for 1,000 iterations).
/// Operations take the durations of the trace. Linear in iterations x (operations + waits).
[[nodiscard]] SWAPMM_EXPORT Simulation simulate(const Trace& trace, const Plan& plan);
/// The same with other times of operations and copies than those that the plan was made for.
[[nodiscard]] SWAPMM_EXPORT Simulation simulate(const Trace& trace, const Plan& plan, const StepTimes& times);

/// The end times of the last operation in each of the first `iterations` iterations. Everything of the iteration before
/// has ended at time 0. No value is above longest_iteration.
[[nodiscard]] SWAPMM_EXPORT std::vector<std::chrono::nanoseconds> iteration_ends(const Trace& trace, const Plan& plan,
                                                                                 std::size_t iterations);

}  // namespace swapmm
