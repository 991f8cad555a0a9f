// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <limits>
#include <optional>

namespace swapmm {

/// A number of bytes: a size, or an offset from the start of a memory. Never negative. The operators `+` and `-` do not
/// check for overflow; use checked_add() for values that were not checked before.
struct Bytes {
  std::uint64_t value = 0;  ///< the number of bytes

  constexpr Bytes() = default;
  /// Explicit, so that other numbers do not convert to bytes.
  constexpr explicit Bytes(std::uint64_t bytes) : value(bytes) {}

  /// @{
  /// Not checked for overflow.
  friend constexpr auto operator<=>(Bytes, Bytes) = default;
  friend constexpr bool operator==(Bytes, Bytes) = default;  // implied by the line above, but nvcc 13 leaves it out
  friend constexpr Bytes operator+(Bytes a, Bytes b) { return Bytes{a.value + b.value}; }
  friend constexpr Bytes operator-(Bytes a, Bytes b) { return Bytes{a.value - b.value}; }
  constexpr Bytes& operator+=(Bytes other) { return *this = *this + other; }
  constexpr Bytes& operator-=(Bytes other) { return *this = *this - other; }
  /// @}
};

/// a + b, or nothing if the sum does not fit 64 bits.
[[nodiscard]] constexpr std::optional<Bytes> checked_add(Bytes a, Bytes b) {
  if (a.value > std::numeric_limits<std::uint64_t>::max() - b.value) return std::nullopt;
  return a + b;
}

/// a * count, or nothing if the product does not fit 64 bits.
[[nodiscard]] constexpr std::optional<Bytes> checked_multiply(Bytes a, std::uint64_t count) {
  if (count != 0 && a.value > std::numeric_limits<std::uint64_t>::max() / count) return std::nullopt;
  return Bytes{a.value * count};
}

/// The smallest multiple of `alignment` that is not below `bytes`, or nothing if it does not fit 64 bits. `alignment`
/// is any number from 1 on, not only a power of two.
[[nodiscard]] constexpr std::optional<Bytes> checked_round_up(Bytes bytes, Bytes alignment) {
  const std::uint64_t rest = bytes.value % alignment.value;
  return rest == 0 ? std::optional{bytes} : checked_add(bytes, Bytes{alignment.value - rest});
}

/// The same as checked_round_up(), for sizes that are known to be far below 2^64.
[[nodiscard]] constexpr Bytes round_up(Bytes bytes, Bytes alignment) {
  const std::uint64_t rest = bytes.value % alignment.value;
  return rest == 0 ? bytes : bytes + Bytes{alignment.value - rest};
}

/// The largest multiple of `alignment` that is not above `bytes`.
[[nodiscard]] constexpr Bytes round_down(Bytes bytes, Bytes alignment) {
  return bytes - Bytes{bytes.value % alignment.value};
}

/// Literals such as 64_KiB, 256_MiB, 8_GiB and 100_bytes: `using namespace swapmm::literals;`. Not checked for
/// overflow.
namespace literals {
constexpr Bytes operator""_bytes(unsigned long long count) { return Bytes{count}; }       ///< single bytes
constexpr Bytes operator""_KiB(unsigned long long count) { return Bytes{count << 10U}; }  ///< 1,024 bytes each
constexpr Bytes operator""_MiB(unsigned long long count) { return Bytes{count << 20U}; }  ///< 1,024 KiB each
constexpr Bytes operator""_GiB(unsigned long long count) { return Bytes{count << 30U}; }  ///< 1,024 MiB each
}  // namespace literals

}  // namespace swapmm
