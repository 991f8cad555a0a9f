// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <limits>
#include <optional>

namespace swapmm {

/// A number of bytes: a size, or an offset from the start of a memory. Never negative.
/// Plain `+` and `-` are for sums that were checked before (see checked_add); they do not check again.
struct Bytes {
  std::uint64_t value = 0;  ///< how many

  constexpr Bytes() = default;
  /// Explicit, so that no other number is taken for bytes.
  constexpr explicit Bytes(std::uint64_t bytes) : value(bytes) {}

  /// @{
  /// Plain: not checked.
  friend constexpr auto operator<=>(Bytes, Bytes) = default;
  friend constexpr bool operator==(Bytes, Bytes) = default;  // implied by the one above, and forgotten by nvcc 13
  friend constexpr Bytes operator+(Bytes a, Bytes b) { return Bytes{a.value + b.value}; }
  friend constexpr Bytes operator-(Bytes a, Bytes b) { return Bytes{a.value - b.value}; }
  constexpr Bytes& operator+=(Bytes other) { return *this = *this + other; }
  constexpr Bytes& operator-=(Bytes other) { return *this = *this - other; }
  /// @}
};

/// a + b, or nothing where the sum does not fit 64 bits.
[[nodiscard]] constexpr std::optional<Bytes> checked_add(Bytes a, Bytes b) {
  if (a.value > std::numeric_limits<std::uint64_t>::max() - b.value) return std::nullopt;
  return a + b;
}

/// a * count, or nothing where the product does not fit 64 bits.
[[nodiscard]] constexpr std::optional<Bytes> checked_multiply(Bytes a, std::uint64_t count) {
  if (count != 0 && a.value > std::numeric_limits<std::uint64_t>::max() / count) return std::nullopt;
  return Bytes{a.value * count};
}

/// The next multiple of `alignment` (at least 1, any number, not only powers of two) at or above `bytes`,
/// or nothing where it does not fit 64 bits.
[[nodiscard]] constexpr std::optional<Bytes> checked_round_up(Bytes bytes, Bytes alignment) {
  const std::uint64_t rest = bytes.value % alignment.value;
  return rest == 0 ? std::optional{bytes} : checked_add(bytes, Bytes{alignment.value - rest});
}

/// checked_round_up for sizes known to be far below 2^64.
[[nodiscard]] constexpr Bytes round_up(Bytes bytes, Bytes alignment) {
  const std::uint64_t rest = bytes.value % alignment.value;
  return rest == 0 ? bytes : bytes + Bytes{alignment.value - rest};
}

/// The multiple of `alignment` at or below `bytes`.
[[nodiscard]] constexpr Bytes round_down(Bytes bytes, Bytes alignment) {
  return bytes - Bytes{bytes.value % alignment.value};
}

/// `using namespace swapmm::literals;` for 64_KiB, 256_MiB, 8_GiB and 100_bytes. Not checked for 64 bits.
namespace literals {
constexpr Bytes operator""_bytes(unsigned long long count) { return Bytes{count}; }       ///< single bytes
constexpr Bytes operator""_KiB(unsigned long long count) { return Bytes{count << 10U}; }  ///< 1,024 bytes each
constexpr Bytes operator""_MiB(unsigned long long count) { return Bytes{count << 20U}; }  ///< 1,024 KiB each
constexpr Bytes operator""_GiB(unsigned long long count) { return Bytes{count << 30U}; }  ///< 1,024 MiB each
}  // namespace literals

}  // namespace swapmm
