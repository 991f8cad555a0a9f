// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace swapmm::planning {

/// Rounds to whole nanoseconds, and clamps to 2^62 of them (more than a century).
[[nodiscard]] inline std::int64_t whole(double time) {
  constexpr double longest = 0x1p62;
  return std::llround(std::clamp(time, -longest, longest));
}

/// Times that differ by less than this are equal, because they are sums of whole nanoseconds.
inline constexpr double same = 0.5;

}  // namespace swapmm::planning
