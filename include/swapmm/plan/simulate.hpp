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

/// When something ran.
struct Span {
  std::chrono::nanoseconds start{0};  ///< when it began
  std::chrono::nanoseconds end{0};    ///< when it had ended; not before start
};

/// One iteration in the steady state. Times count from the end of the last operation of the iteration before.
struct Simulation {
  std::chrono::nanoseconds iteration{0};  ///< long-run mean, rounded to the nearest nanosecond; see longest_iteration
  std::chrono::nanoseconds compute{0};    ///< sum of the durations of the operations
  Bytes h2d;                              ///< copied to the device
  Bytes d2h;                              ///< copied to the host
  Bytes peak;                             ///< occupied at one time, sizes rounded up to the alignment
  std::vector<Span> operations;           ///< of the last iteration simulated
  std::vector<Span> commands;             ///< of the last iteration simulated; negative where it ran in the one before
};

/// What is predicted of an iteration that, with the copies that run on behind it, takes longer than this (146 years).
inline constexpr std::chrono::nanoseconds longest_iteration{(std::int64_t{1} << 62) - 1};

/// Runs a valid plan by the timing rules of docs/formats.md until it repeats itself (or 1,000 iterations).
/// Operations take the durations of the trace. Linear in iterations x (operations + waits).
[[nodiscard]] SWAPMM_EXPORT Simulation simulate(const Trace& trace, const Plan& plan);
/// The same where operations and copies take other times than the plan was made for: how it does when they vary.
[[nodiscard]] SWAPMM_EXPORT Simulation simulate(const Trace& trace, const Plan& plan, const StepTimes& times);

/// When the last operation of each of the first `iterations` iterations ends, counted from a start in which
/// everything of the iteration before has ended at time 0. None is above longest_iteration.
[[nodiscard]] SWAPMM_EXPORT std::vector<std::chrono::nanoseconds> iteration_ends(const Trace& trace, const Plan& plan,
                                                                                 std::size_t iterations);

}  // namespace swapmm
