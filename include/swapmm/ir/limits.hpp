// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

/// How large the things of the formats may be (docs/formats.md). They keep sums within 64 bits, ids within 32, and
/// what an untrusted file can make a reader do within reason.
namespace swapmm::limits {

inline constexpr std::uint64_t file_bytes = std::uint64_t{256} << 20U;  ///< of one text
inline constexpr std::size_t tensors = std::size_t{1} << 20U;           ///< of a trace
inline constexpr std::size_t operations = std::size_t{1} << 24U;        ///< of a trace
inline constexpr std::size_t host_reads = std::size_t{1} << 24U;        ///< of a trace
inline constexpr std::size_t commands = std::size_t{1} << 24U;          ///< of a plan
inline constexpr std::size_t name_bytes = 1024;                         ///< of a string of the formats, as UTF-8
inline constexpr std::size_t nesting = 16;                              ///< of objects and arrays in each other

/// Sizes, sums of sizes, bandwidths, and sums of durations in nanoseconds (146 years) stay below it.
inline constexpr std::uint64_t magnitude = std::uint64_t{1} << 62U;
/// The largest alignment: with it, the sum of the sizes of all tensors rounded up stays below 2^63.
inline constexpr std::uint64_t alignment_bytes = std::uint64_t{1} << 40U;

}  // namespace swapmm::limits
