// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

namespace swapmm::planning {

/// The part of a whole: `whole * part`, rounded down. A user may set any part. The result is 0 for a negative part or
/// NaN, and at most 2^62, so that it fits into signed integers, too.
[[nodiscard]] inline std::uint64_t share_of(std::uint64_t whole, double part) {
  constexpr double most = 0x1p62;
  return static_cast<std::uint64_t>(std::min(most, std::max(0.0, static_cast<double>(whole) * part)));
}

}  // namespace swapmm::planning
