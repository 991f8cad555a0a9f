// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace swapmm::planning {

/// In nanoseconds; what takes more than a century is not told apart.
[[nodiscard]] inline std::int64_t whole(double time) {
  constexpr double longest = 0x1p62;
  return std::llround(std::clamp(time, -longest, longest));
}

/// Times are sums of whole nanoseconds: below this they are equal.
inline constexpr double same = 0.5;

}  // namespace swapmm::planning
