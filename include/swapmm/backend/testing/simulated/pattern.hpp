// SPDX-License-Identifier: Apache-2.0
#pragma once

// Bytes that show where they come from: lane j (8 bytes) of tensor t in version v holds mix(t, v, j). If a test finds
// wrong bytes, it can tell whether they are stale, torn, of another tensor, never written, or freed.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include <swapmm/backend/testing/simulated/random.hpp>

namespace swapmm::simulated {

inline constexpr std::byte fresh_byte{0xDC};  ///< value of memory before its first write
inline constexpr std::byte freed_byte{0xEF};  ///< value of memory after its release

/// Returns the eight bytes of a lane as a number.
[[nodiscard]] constexpr std::uint64_t mix(std::uint64_t tensor, std::uint64_t version, std::uint64_t lane) {
  return detail::scramble(detail::scramble(detail::scramble(tensor) ^ version) + lane);
}

/// The result of checking bytes. If several apply, it is the worst one.
enum class Found : std::uint8_t {
  exact,    ///< bytes of the requested version
  stale,    ///< bytes of one older version only
  torn,     ///< parts of several versions
  foreign,  ///< none of the others: bytes of another tensor, or of another place in this one
  poison,   ///< memory that was never written
  freed,    ///< memory after its release
};

/// Returns the name of the enumerator.
[[nodiscard]] constexpr std::string_view to_string(Found found) {
  switch (found) {
    case Found::exact: return "exact";
    case Found::stale: return "stale";
    case Found::torn: return "torn";
    case Found::foreign: return "foreign";
    case Found::poison: return "poison";
    case Found::freed: return "freed";
  }
  return "unknown";
}

/// The result of check().
struct Finding {
  Found found = Found::exact;  ///< what the bytes are
  std::size_t offset = 0;      ///< offset of the first wrong byte
  std::uint64_t version = 0;   ///< the older version in the first wrong lane, if it is stale or torn
};

/// Returns the bytes of a lane, in the same order on every machine.
[[nodiscard]] constexpr std::array<std::byte, 8> lane_bytes(std::uint64_t tensor, std::uint64_t version,
                                                            std::uint64_t lane) {
  const std::uint64_t value = mix(tensor, version, lane);
  std::array<std::byte, 8> bytes{};
  for (unsigned i = 0; i < 8; ++i) bytes[i] = static_cast<std::byte>((value >> (8 * i)) & 0xFFU);
  return bytes;
}

/// Fills `bytes` with tensor t in version v. The last lane is cut if the size is not a multiple of 8.
inline void fill(std::span<std::byte> bytes, std::uint64_t tensor, std::uint64_t version) {
  for (std::size_t begin = 0; begin < bytes.size(); begin += 8) {
    const auto lane = lane_bytes(tensor, version, begin / 8);
    std::memcpy(bytes.data() + begin, lane.data(), std::min<std::size_t>(8, bytes.size() - begin));
  }
}

namespace detail {

/// Returns whether each byte equals the one of `wanted` or the one of `other`.
inline bool between(std::span<const std::byte> bytes, std::span<const std::byte> wanted,
                    std::span<const std::byte> other) {
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] != wanted[i] && bytes[i] != other[i]) return false;
  }
  return true;
}

/// Classifies a lane that is not `wanted`. Tries up to `versions_back` older versions, newest first.
inline Finding classify_lane(std::span<const std::byte> bytes, std::span<const std::byte> wanted, std::uint64_t tensor,
                             std::uint64_t version, std::uint64_t lane, std::uint64_t versions_back) {
  std::array<std::byte, 8> constant{};
  constant.fill(freed_byte);
  if (between(bytes, wanted, constant)) return {Found::freed, 0, 0};
  constant.fill(fresh_byte);
  if (between(bytes, wanted, constant)) return {Found::poison, 0, 0};
  for (std::uint64_t back = 1; back <= std::min(version, versions_back); ++back) {
    const auto older = lane_bytes(tensor, version - back, lane);
    if (std::equal(bytes.begin(), bytes.end(), older.begin())) return {Found::stale, 0, version - back};
    if (between(bytes, wanted, older)) return {Found::torn, 0, version - back};
  }
  return {Found::foreign, 0, 0};
}

}  // namespace detail

/// Checks whether the bytes are tensor t in version v. Fast if they are; otherwise tries up to `versions_back` older
/// versions.
[[nodiscard]] inline Finding check(std::span<const std::byte> bytes, std::uint64_t tensor, std::uint64_t version,
                                   std::uint64_t versions_back = 64) {
  Finding result;
  bool some_right = false;
  for (std::size_t begin = 0; begin < bytes.size(); begin += 8) {
    const auto full = lane_bytes(tensor, version, begin / 8);
    const std::size_t size = std::min<std::size_t>(8, bytes.size() - begin);
    const std::span<const std::byte> wanted(full.data(), size);
    const auto part = bytes.subspan(begin, size);
    if (std::equal(part.begin(), part.end(), wanted.begin())) {
      some_right = true;
      continue;
    }
    Finding lane = detail::classify_lane(part, wanted, tensor, version, begin / 8, versions_back);
    const auto wrong = std::mismatch(part.begin(), part.end(), wanted.begin()).first;
    lane.offset = begin + static_cast<std::size_t>(wrong - part.begin());
    if (result.found == Found::exact) {
      result = lane;
      continue;
    }
    const bool of_two_versions =
        result.found == Found::stale && lane.found == Found::stale && result.version != lane.version;
    result.found = of_two_versions ? Found::torn : std::max(result.found, lane.found);
  }
  if (result.found == Found::stale && some_right) result.found = Found::torn;
  return result;
}

}  // namespace swapmm::simulated
