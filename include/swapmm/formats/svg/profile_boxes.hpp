// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <swapmm/base/bytes.hpp>
#include <swapmm/formats/chart/chart.hpp>
#include <swapmm/ir/profile.hpp>

// Internal: reduces a profile to what is visible at a width in pixels.

namespace swapmm::svg {

/// A box: one span, or several consecutive spans that are too short to be visible one by one. The box of several spans
/// is as long as they ran in total, so the box and the gap after it show how busy the row was.
struct Box {
  std::chrono::nanoseconds start{0};
  std::chrono::nanoseconds end{0};   ///< end of the last span
  std::chrono::nanoseconds busy{0};  ///< the sum of their lengths
  std::size_t first = 0;             ///< position among the spans of the row
  std::size_t last = 0;
  std::size_t spans = 1;
  Bytes bytes;
  std::uint32_t kind = 0;               ///< of the longest span
  std::chrono::nanoseconds longest{0};  ///< length of that one

  [[nodiscard]] std::chrono::nanoseconds drawn_end() const { return start + busy; }
};

/// The boxes of the spans of one row, sorted by start. Spans shorter than `fine` share a box if less than that is
/// between them; a box of several spans is at most four times `fine` long.
[[nodiscard]] std::vector<Box> boxes_of(std::span<const chart::Span> spans, std::chrono::nanoseconds fine);

struct Gap {
  std::chrono::nanoseconds start{0};
  std::chrono::nanoseconds end{0};
};

/// The gaps between the boxes as they are drawn, from 0 to `end`.
[[nodiscard]] std::vector<Gap> gaps_between(const std::vector<Box>& boxes, std::chrono::nanoseconds end);

/// Reduces levels to at most two in any interval of length `fine`: the highest one in it, and the last one. Peaks keep
/// their height.
[[nodiscard]] std::vector<ProfileLevel> coarser(std::span<const ProfileLevel> levels, std::chrono::nanoseconds fine);

}  // namespace swapmm::svg
