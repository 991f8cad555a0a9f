// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <swapmm/base/bytes.hpp>
#include <swapmm/base/export.hpp>
#include <swapmm/ir/profile.hpp>

namespace swapmm::v2 {

/// What a span of a profile is.
enum class SpanKind : std::uint8_t {
  operation,  ///< an operation
  again,      ///< an operation that runs again
  coding,     ///< a value is encoded or decoded
  copy,       ///< a value is copied
};

/// What ran on an engine or on a link.
struct ProfileSpan {
  std::uint32_t row = 0;                ///< position in Profile::rows
  SpanKind kind = SpanKind::operation;  ///< what it is
  std::string name;                     ///< for people: the operation, or the value that is copied or coded
  Bytes bytes;                          ///< what a copy transfers; 0 for all others
  std::chrono::nanoseconds start{0};    ///< from the profile's beginning; not negative
  std::chrono::nanoseconds end{0};      ///< not before `start`

  friend bool operator==(const ProfileSpan&, const ProfileSpan&) = default;
};

/// An engine or a link: it runs one thing at a time.
struct ProfileRow {
  /// What it is.
  enum class Kind : std::uint8_t {
    engine,    ///< an engine that runs operations
    link_in,   ///< a link to a memory whose engines run operations
    link_out,  ///< any other link
  };
  std::string name;          ///< the engine's, or the link's
  Kind kind = Kind::engine;  ///< what it is

  friend bool operator==(const ProfileRow&, const ProfileRow&) = default;
};

/// The bytes that are occupied in a memory.
struct ProfileMemory {
  std::string name;                  ///< the memory's
  Bytes bytes;                       ///< its size
  std::vector<ProfileLevel> levels;  ///< sorted by time, at most one per time; the first is at the beginning

  friend bool operator==(const ProfileMemory&, const ProfileMemory&) = default;
};

/// What ran when, and how much of each memory was occupied, on a machine with any number of engines, links and
/// memories. Plain data. swapmm::Profile is the same for one device.
struct Profile {
  std::string title;                                     ///< what was run, for people
  std::string machine;                                   ///< where it ran, for people
  std::vector<ProfileRow> rows;                          ///< engines and links that something ran on
  std::vector<ProfileMemory> memories;                   ///< those with a limit
  std::vector<ProfileSpan> spans;                        ///< sorted by start; spans of one row do not overlap
  std::vector<std::chrono::nanoseconds> iteration_ends;  ///< when each iteration ended

  friend bool operator==(const Profile&, const Profile&) = default;
};

/// The time at which the last iteration ended; 0 if there is none.
[[nodiscard]] SWAPMM_EXPORT std::chrono::nanoseconds iterations_end(const Profile& profile);

/// The time at which everything in the profile has ended.
[[nodiscard]] SWAPMM_EXPORT std::chrono::nanoseconds profile_end(const Profile& profile);

/// For each row, the time in which something of that kind ran, or anything if `kind` is none. Linear.
[[nodiscard]] SWAPMM_EXPORT std::vector<std::chrono::nanoseconds> busy_times(
    const Profile& profile, std::optional<SpanKind> kind = std::nullopt);

/// Describes the profile in one line for people (UTF-8): length of an iteration, idle time of each engine, bytes
/// copied over links.
[[nodiscard]] SWAPMM_EXPORT std::string describe(const Profile& profile);

}  // namespace swapmm::v2
