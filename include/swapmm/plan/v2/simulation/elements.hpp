// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <swapmm/base/bytes.hpp>
#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/simulate.hpp>
#include <swapmm/plan/v2/machine.hpp>
#include <swapmm/plan/v2/plan.hpp>
#include <swapmm/plan/v2/simulation/parts.hpp>

namespace swapmm::v2::simulation {

/// Nanoseconds from the beginning of the first iteration. Wide enough for any number of iterations that can be
/// simulated, so that no sum needs a check.
__extension__ using Time = __int128;
/// Billionths of a byte: what a copy transfers in a nanosecond at a rate of 1 byte per second.
__extension__ using Work = unsigned __int128;

inline constexpr Work work_per_byte = 1'000'000'000;
/// An iteration that takes longer ends the simulation.
inline constexpr Time longest = longest_iteration.count();

/// The time, at least 0 and at most `longest`.
[[nodiscard]] inline std::chrono::nanoseconds to_nanoseconds(Time time) {
  return std::chrono::nanoseconds{static_cast<std::int64_t>(std::clamp(time, Time{0}, longest))};
}

/// What an operation or a command does in each iteration, in the terms of the simulation.
struct Element {
  std::int64_t time = 0;           ///< nanoseconds on its engine; of a copy, the latency before it flows
  std::optional<EngineId> engine;  ///< none: allocate and release
  std::optional<LinkId> link;      ///< where it flows; copies only
  Bytes flow;                      ///< the bytes that flow
  std::optional<MemoryId> memory;  ///< with a limit, where it takes or gives back a place when it starts
  /// The bytes that it takes there, rounded up to the alignment. What it gives back is 0 minus its size: sums of these
  /// may wrap below zero, which is well-defined for unsigned numbers.
  Bytes occupied;
};

/// The operations, then the commands, then the end of the iteration, which takes no time. Command j is element n + j,
/// where n is the number of operations.
[[nodiscard]] std::vector<Element> elements_of(const Trace& trace, const Plan& plan, const Parts& parts);

/// The bytes that the plan's initial places occupy in each memory; 0 in memories without limit.
[[nodiscard]] std::vector<Bytes> initially_occupied(const Plan& plan, const Parts& parts);

}  // namespace swapmm::v2::simulation
