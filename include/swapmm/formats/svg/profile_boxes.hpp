// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <vector>

#include <swapmm/base/bytes.hpp>
#include <swapmm/ir/profile.hpp>

// A profile made coarser: what of it can be seen at a width in pixels; not part of the public interface.

namespace swapmm::svg {

/// A span, or several in a row that are too short to be seen one by one: those share a box as long as they ran, so that
/// the box and the gap behind it show how busy the lane was.
struct Box {
  std::chrono::nanoseconds start{0};
  std::chrono::nanoseconds end{0};   ///< of the last one
  std::chrono::nanoseconds busy{0};  ///< the sum of their lengths
  std::size_t first = 0;             ///< position in Profile::spans
  std::size_t last = 0;
  std::size_t spans = 1;
  Bytes bytes;

  [[nodiscard]] std::chrono::nanoseconds drawn_end() const { return start + busy; }
};

/// The boxes of a lane by start. Spans shorter than `fine` share a box where less than that is between them; a box of
/// several is at most four times `fine` long.
[[nodiscard]] std::vector<Box> boxes_of(const Profile& profile, Lane lane, std::chrono::nanoseconds fine);

struct Gap {
  std::chrono::nanoseconds start{0};
  std::chrono::nanoseconds end{0};
};

/// What is between the boxes as they are drawn, from 0 to `end`.
[[nodiscard]] std::vector<Gap> gaps_between(const std::vector<Box>& boxes, std::chrono::nanoseconds end);

/// The levels with at most two in any time of length `fine`: the highest of those that are left out, and the last one.
/// Peaks stay as high as they are.
[[nodiscard]] std::vector<ProfileLevel> coarser(const std::vector<ProfileLevel>& levels, std::chrono::nanoseconds fine);

}  // namespace swapmm::svg
