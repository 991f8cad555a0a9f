// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <swapmm/base/bytes.hpp>
#include <swapmm/formats/svg/elements.hpp>

// Where times and bytes are in the picture of a profile, and the ticks of its axes; not part of the public interface.

namespace swapmm::svg {

/// From 0 at `left` to `length` at `left + width`.
struct TimeScale {
  Length left = 0;
  Length width = 0;
  std::chrono::nanoseconds length{0};

  /// What is outside is at the edge.
  [[nodiscard]] Length at(std::chrono::nanoseconds time) const;
  /// How long so many hundredths of a pixel are.
  [[nodiscard]] std::chrono::nanoseconds time_of(Length pixels) const;
};

/// From 0 at `bottom` up to `top` at `bottom - height`.
struct ByteScale {
  Length bottom = 0;
  Length height = 0;
  Bytes top;  ///< above 0

  [[nodiscard]] Length at(Bytes bytes) const;
};

struct Tick {
  Length at = 0;
  std::string label;
};

/// At most `count` + 1 ticks at 0 and at round times: multiples of 1, 2 or 5 times a power of ten.
[[nodiscard]] std::vector<Tick> ticks(const TimeScale& scale, std::int64_t count);

/// At most `count` + 1 ticks at 0 and at multiples of a power of two.
[[nodiscard]] std::vector<Tick> ticks(const ByteScale& scale, std::uint64_t count);

}  // namespace swapmm::svg
