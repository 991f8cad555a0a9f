// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <swapmm/base/bytes.hpp>
#include <swapmm/base/export.hpp>

namespace swapmm {

/// A lane of a profile: the computation, or the copies in one direction. A lane runs one thing at a time.
enum class Lane : std::uint8_t {
  compute,  ///< operations
  h2d,      ///< copies from host to device: swap-ins
  d2h,      ///< copies from device to host: swap-outs
};
/// The number of lanes.
inline constexpr std::size_t lane_count = 3;

/// An operation or a copy that ran on the device.
struct ProfileSpan {
  Lane lane = Lane::compute;          ///< where it ran
  std::string name;                   ///< name of the operation, or of the tensor that was copied
  Bytes bytes;                        ///< size of a copy; 0 for an operation
  std::chrono::nanoseconds start{0};  ///< from the profile's beginning; negative if it began before that
  std::chrono::nanoseconds end{0};    ///< not before `start`

  friend bool operator==(const ProfileSpan&, const ProfileSpan&) = default;
};

/// A number of bytes taken on the device, from a time until the next level.
struct ProfileLevel {
  std::chrono::nanoseconds time{0};  ///< from the profile's beginning
  Bytes used;                        ///< bytes taken from then on

  friend bool operator==(const ProfileLevel&, const ProfileLevel&) = default;
};

/// What ran on a device when, and how much of its memory was taken. Measured, or predicted for a plan. Plain data.
struct Profile {
  std::string title;                 ///< what was run, for people
  std::string device;                ///< where it ran, for people
  Bytes device_budget;               ///< the budget; 0 if there is none
  std::vector<ProfileSpan> spans;    ///< sorted by start; spans of one lane do not overlap
  std::vector<ProfileLevel> levels;  ///< sorted by time, at most one per time; the first is at the beginning
  std::vector<std::chrono::nanoseconds> iteration_ends;  ///< when the last operation of each iteration ended

  friend bool operator==(const Profile&, const Profile&) = default;
};

/// The part of a span between two times, with its share of the bytes. The span must overlap this interval. The bytes of
/// parts that make up the whole span add up to the bytes of the span.
[[nodiscard]] SWAPMM_EXPORT ProfileSpan part_of(const ProfileSpan& span, std::chrono::nanoseconds from,
                                                std::chrono::nanoseconds to);

/// One iteration of a profile. It begins, at time 0, when the last operation of the iteration before ends, and it ends
/// with its own last operation. Spans that extend beyond it are cut. Returns an empty profile if there is no such
/// iteration.
[[nodiscard]] SWAPMM_EXPORT Profile one_iteration(const Profile& profile, std::size_t iteration);

/// The time at which the last iteration ended; without iterations, the last operation. 0 if nothing ran.
[[nodiscard]] SWAPMM_EXPORT std::chrono::nanoseconds compute_end(const Profile& profile);

/// The time at which everything in the profile has ended. Not before compute_end().
[[nodiscard]] SWAPMM_EXPORT std::chrono::nanoseconds profile_end(const Profile& profile);

/// The time from the profile's beginning to compute_end() in which no operation ran.
[[nodiscard]] SWAPMM_EXPORT std::chrono::nanoseconds idle_time(const Profile& profile);

/// The sum of the bytes of all copies in a lane.
[[nodiscard]] SWAPMM_EXPORT Bytes bytes_copied(const Profile& profile, Lane lane);

/// The largest number of bytes taken at one time.
[[nodiscard]] SWAPMM_EXPORT Bytes peak_used(const Profile& profile);

/// Describes the profile in one line for people (UTF-8): length of an iteration, idle time, bytes copied in and out,
/// peak and budget.
[[nodiscard]] SWAPMM_EXPORT std::string describe(const Profile& profile);

}  // namespace swapmm
