// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <charconv>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>
#include <system_error>

// By the layer and by `swapmm run` alike.

namespace swapmm::opencl::layer {

/// A number of seconds from 0 to 86,400, which may have decimals. Nothing for another text.
[[nodiscard]] inline std::optional<std::chrono::nanoseconds> seconds_of(std::string_view text) {
  double value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = read.ec == std::errc() && read.ptr == text.data() + text.size();
  if (!whole || !(value >= 0 && value <= 86400)) return std::nullopt;  // not a number is none of it
  return std::chrono::nanoseconds(static_cast<std::int64_t>(value * 1e9));
}

}  // namespace swapmm::opencl::layer
