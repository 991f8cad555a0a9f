// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

/// Limits of the file formats (docs/formats.md). They keep sums within 64 bits and ids within 32 bits, and they bound
/// the work that an untrusted file can cause.
namespace swapmm::limits {

inline constexpr std::uint64_t file_bytes = std::uint64_t{256} << 20U;  ///< size of one text
inline constexpr std::size_t tensors = std::size_t{1} << 20U;           ///< in a trace
inline constexpr std::size_t operations = std::size_t{1} << 24U;        ///< in a trace
inline constexpr std::size_t host_reads = std::size_t{1} << 24U;        ///< in a trace
inline constexpr std::size_t commands = std::size_t{1} << 24U;          ///< in a plan
inline constexpr std::size_t name_bytes = 1024;                         ///< length of a string in the formats, as UTF-8
inline constexpr std::size_t short_name_bytes = 100;           ///< length of a name that other parts of a text refer to
inline constexpr std::size_t engines = std::size_t{1} << 16U;  ///< in a trace or a machine
inline constexpr std::size_t forms = 64;                       ///< of one tensor
inline constexpr std::size_t accesses_of_parts = std::size_t{1} << 26U;  ///< of operations, in a plan that divides
inline constexpr std::size_t clocks = std::size_t{1} << 28U;    ///< operations and commands x engines, in a plan
inline constexpr std::size_t memories = 1024;                   ///< in a machine
inline constexpr std::size_t links = std::size_t{1} << 16U;     ///< in a machine; also of capacities
inline constexpr std::size_t sharings = std::size_t{1} << 20U;  ///< capacities that the links of a machine name
inline constexpr std::size_t nesting = 16;                      ///< depth of nested objects and arrays

/// Sizes, sums of sizes, bandwidths, and sums of durations in nanoseconds (146 years) are below this value.
inline constexpr std::uint64_t magnitude = std::uint64_t{1} << 62U;
/// The largest alignment. With it, the sum of the rounded sizes of all tensors stays below 2^63.
inline constexpr std::uint64_t alignment_bytes = std::uint64_t{1} << 40U;

}  // namespace swapmm::limits
