// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <swapmm/base/bytes.hpp>
#include <swapmm/formats/svg/elements.hpp>

// Internal: the positions of times and bytes in the picture of a profile, and the ticks of its axes.

namespace swapmm::svg {

/// A time scale, from 0 at `left` to `length` at `left + width`.
struct TimeScale {
  Length left = 0;
  Length width = 0;
  std::chrono::nanoseconds length{0};

  /// The position of a time, clamped to the edges.
  [[nodiscard]] Length at(std::chrono::nanoseconds time) const;
  /// The time that this many hundredths of a pixel represent.
  [[nodiscard]] std::chrono::nanoseconds time_of(Length pixels) const;
};

/// A scale of bytes, from 0 at `bottom` up to `top` at `bottom - height`.
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

/// Makes at most `count` + 1 ticks, at 0 and at round times: multiples of 1, 2 or 5 times a power of ten.
[[nodiscard]] std::vector<Tick> ticks(const TimeScale& scale, std::int64_t count);

/// Makes at most `count` + 1 ticks, at 0 and at multiples of a power of two.
[[nodiscard]] std::vector<Tick> ticks(const ByteScale& scale, std::uint64_t count);

}  // namespace swapmm::svg
