// SPDX-License-Identifier: Apache-2.0
#pragma once

// Runs a plan event by event on real values and says what went wrong. Written from docs/formats.md alone: it shares
// nothing with the validator and the simulator, whose judge it is.

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/plan.hpp>

namespace swapmm::test {

/// For each iteration the durations of all operations, then of all commands, in nanoseconds; those of allocate and
/// release are 0.
using Durations = std::vector<std::vector<std::int64_t>>;

/// What the trace and the machine say, in each iteration.
[[nodiscard]] Durations nominal_durations(const Trace& trace, const Plan& plan, std::size_t iterations);
/// Above 0 for all that takes time, and of very different sizes, so that what is not ordered comes in any order.
[[nodiscard]] Durations random_durations(std::mt19937_64& random, const Trace& trace, const Plan& plan,
                                         std::size_t iterations);

struct Execution {
  /// Wrong values, unordered accesses, bytes of two tensors, places outside, a deadlock, an end unlike the start.
  std::vector<std::string> faults;
  std::vector<std::int64_t> iteration_ends;
};

/// Runs as many iterations as there are durations. The plan's indices must be in range, nothing else of it need be
/// right. Values are checked only where nothing that takes time takes none: else what is simultaneous has no order.
[[nodiscard]] Execution execute(const Trace& trace, const Plan& plan, const Durations& durations, bool check_values);

}  // namespace swapmm::test
