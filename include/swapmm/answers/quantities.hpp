// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <swapmm/base/bytes.hpp>
#include <swapmm/base/result.hpp>
#include <swapmm/formats/quantity.hpp>

// Quantities as people write them. A Problem names the token, what is wrong with it, and what would be right. Numbers
// have a point, not a comma, and may have an exponent; between number and unit may be a space.

namespace swapmm::answers {

using quantity::Budget;
using quantity::parse_size;

/// A size; or a share of the peak of live bytes: 50% or 0.5 (a number without unit that has a point).
[[nodiscard]] Result<Budget> parse_budget(std::string_view text);

/// Bytes per second above 0: 15.754GB/s, 12 GB/s, 15754000000.
[[nodiscard]] Result<std::uint64_t> parse_bandwidth(std::string_view text);

/// 10s, 500ms, 20us, 5min; the unit must be there.
[[nodiscard]] Result<std::chrono::nanoseconds> parse_time(std::string_view text);
/// The same for a search, above 0.
[[nodiscard]] Result<std::chrono::nanoseconds> parse_time_limit(std::string_view text);

/// 25% or 0.25, from 0 up to, not including, 1.
[[nodiscard]] Result<double> parse_noise(std::string_view text);

/// A factor above 0, at most a million: 0.2, 1/5 or 20%.
[[nodiscard]] Result<double> parse_factor(std::string_view text);

/// A link that is slow for a while.
struct SlowLink {
  double speed = 1;  ///< of the whole, above 0 and at most 1
  double part = 0;   ///< of an iteration, likewise
};

/// 50%@20%: half the speed for a fifth of the iteration.
[[nodiscard]] Result<SlowLink> parse_slow_link(std::string_view text);

/// A whole number from `least` to `most`, in digits.
[[nodiscard]] Result<std::uint64_t> parse_whole(std::string_view text, std::uint64_t least, std::uint64_t most);

/// The same as a function of its own, for one option.
template <std::uint64_t least, std::uint64_t most>
[[nodiscard]] Result<std::uint64_t> parse_whole_in(std::string_view text) {
  return parse_whole(text, least, most);
}

/// The parts between commas; an empty one is a Problem.
[[nodiscard]] Result<std::vector<std::string_view>> parse_list(std::string_view text);

/// Each part of a list by `parse`.
template <class T>
[[nodiscard]] Result<std::vector<T>> parse_each(std::string_view text, Result<T> (*parse)(std::string_view)) {
  const Result<std::vector<std::string_view>> parts = parse_list(text);
  if (!parts) return parts.problem();
  std::vector<T> values;
  for (const std::string_view part : *parts) {
    Result<T> value = parse(part);
    if (!value) return value.problem();
    values.push_back(*std::move(value));
  }
  return values;
}

/// A size in powers of 1000, as budgets are written: "8.00 GB".
[[nodiscard]] std::string decimal_size(Bytes bytes);

}  // namespace swapmm::answers
