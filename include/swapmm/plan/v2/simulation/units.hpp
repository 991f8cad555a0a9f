// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <swapmm/plan/simulate.hpp>

namespace swapmm::v2::simulation {

/// Nanoseconds from the beginning of the first iteration. Wide enough for any number of iterations that can be
/// simulated, so that no sum needs a check.
__extension__ using Time = __int128;
/// Billionths of a byte: what a copy transfers in a nanosecond at a rate of 1 byte per second.
__extension__ using Work = unsigned __int128;

inline constexpr Work work_per_byte = 1'000'000'000;
/// An iteration that takes longer ends the simulation.
inline constexpr Time longest = longest_iteration.count();

}  // namespace swapmm::v2::simulation
