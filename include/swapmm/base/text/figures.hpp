// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include <swapmm/base/bytes.hpp>

// Numbers as text for people. Uses integers only, so the same number gives the same text in every locale and on every
// machine.

namespace swapmm::text {

/// A unit of time or size.
struct FigureUnit {
  std::string_view name;   ///< name after the number
  std::uint64_t size = 1;  ///< in nanoseconds or bytes
};

/// value / unit, rounded to this many decimals (at most 9); halves are rounded away from zero.
[[nodiscard]] std::string fixed_point(std::int64_t value, std::uint64_t unit, unsigned decimals);

/// The unit in which `longest` has few digits before the point: ns, us, ms or s.
[[nodiscard]] FigureUnit time_unit(std::chrono::nanoseconds longest);

/// A time as text: "12.345 ms". Nanoseconds have no decimals.
[[nodiscard]] std::string time_text(std::chrono::nanoseconds time, FigureUnit unit);
/// The same, in a suitable unit.
[[nodiscard]] std::string time_text(std::chrono::nanoseconds time);

/// The unit in which `most` is at least 1: B, KiB, MiB, GiB or TiB.
[[nodiscard]] FigureUnit size_unit(Bytes most);

/// A size as text: "1.50 GiB". Bytes have no decimals.
[[nodiscard]] std::string size_text(Bytes bytes, FigureUnit unit);
/// The same, in a suitable unit.
[[nodiscard]] std::string size_text(Bytes bytes);

/// `part` in percent of `whole` as text: "12.3 %". 0 if `whole` is 0.
[[nodiscard]] std::string percent_text(std::chrono::nanoseconds part, std::chrono::nanoseconds whole);

}  // namespace swapmm::text
