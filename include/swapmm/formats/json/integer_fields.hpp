// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <type_traits>

#include <swapmm/base/bytes.hpp>
#include <swapmm/base/ids.hpp>
#include <swapmm/formats/json/reader.hpp>
#include <swapmm/ir/limits.hpp>

// Internal: integers of a text that become numbers, sizes, times or ids.

namespace swapmm::json {

/// The largest size, offset, bandwidth or duration.
inline constexpr auto largest_magnitude = static_cast<std::int64_t>(limits::magnitude - 1);
/// Ids that do not fit 32 bits are refused while reading. Whether the others exist is known at the end.
inline constexpr std::int64_t largest_id = std::numeric_limits<std::uint32_t>::max();
inline constexpr auto largest_tensor = static_cast<std::int64_t>(limits::tensors - 1);
inline constexpr auto largest_operation = static_cast<std::int64_t>(limits::operations - 1);
inline constexpr auto largest_command = static_cast<std::int64_t>(limits::commands - 1);

/// An integer that is not negative, as a T.
template <class T>
[[nodiscard]] T integer_as(std::int64_t value) {
  if constexpr (std::is_same_v<T, Bytes>)
    return Bytes{static_cast<std::uint64_t>(value)};
  else if constexpr (std::is_same_v<T, std::chrono::nanoseconds>)
    return std::chrono::nanoseconds{value};
  else if constexpr (std::is_enum_v<T>)
    return id_at<T>(static_cast<std::size_t>(value));
  else
    return static_cast<T>(value);
}

template <class T>
void store_integer(T& target, std::int64_t value) {
  target = integer_as<T>(value);
}
template <class T>
void store_integer(std::optional<T>& target, std::int64_t value) {
  target = integer_as<T>(value);
}

/// @{
/// An integer from 0 to `most`. It is stored in `target`, or in the member of `element()`.
template <class T>
[[nodiscard]] Integer integer_to(T& target, std::int64_t most = largest_magnitude) {
  return {.least = 0, .most = most, .take = [&target](std::int64_t value) { store_integer(target, value); }};
}
template <class Element, class Owner, class T>
[[nodiscard]] Integer integer_to(Element element, T Owner::*member, std::int64_t most = largest_magnitude) {
  return {.least = 0, .most = most, .take = [element, member](std::int64_t value) {
            store_integer(element().*member, value);
          }};
}
/// @}

}  // namespace swapmm::json
