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

/// What runs one thing at a time: the computation, and the copies in each direction.
enum class Lane : std::uint8_t {
  compute,  ///< operations
  h2d,      ///< copies from host to device: swap-ins
  d2h,      ///< copies from device to host: swap-outs
};
/// How many lanes there are.
inline constexpr std::size_t lane_count = 3;

/// Something that ran on the device.
struct ProfileSpan {
  Lane lane = Lane::compute;          ///< where it ran
  std::string name;                   ///< of the operation, or of the tensor that was copied
  Bytes bytes;                        ///< of a copy; 0 for an operation
  std::chrono::nanoseconds start{0};  ///< from the profile's beginning; negative for what began before it
  std::chrono::nanoseconds end{0};    ///< not before `start`

  friend bool operator==(const ProfileSpan&, const ProfileSpan&) = default;
};

/// From that time on, until the next level, so many bytes of the device are taken.
struct ProfileLevel {
  std::chrono::nanoseconds time{0};  ///< from the profile's beginning
  Bytes used;                        ///< taken from then on

  friend bool operator==(const ProfileLevel&, const ProfileLevel&) = default;
};

/// What ran on a device when, and how much of its memory was taken: measured, or predicted for a plan. Plain data.
struct Profile {
  std::string title;                                     ///< what was run, for a person
  std::string device;                                    ///< where it ran, for a person
  Bytes device_budget;                                   ///< the bytes that could be taken; 0 where there is no budget
  std::vector<ProfileSpan> spans;                        ///< by start; those of one lane do not overlap
  std::vector<ProfileLevel> levels;                      ///< by time, one for a time; the first one at the beginning
  std::vector<std::chrono::nanoseconds> iteration_ends;  ///< when the last operation of each iteration ended

  friend bool operator==(const Profile&, const Profile&) = default;
};

/// What of a span lies between two times that it reaches into, with its share of the bytes: the bytes of parts that
/// make up the whole add up to those of the whole.
[[nodiscard]] SWAPMM_EXPORT ProfileSpan part_of(const ProfileSpan& span, std::chrono::nanoseconds from,
                                                std::chrono::nanoseconds to);

/// One iteration of a profile: from the end of the last operation of the iteration before to that of its own, which is
/// its time 0 and its end. What only reaches into it is cut there. An empty profile where there is no such iteration.
[[nodiscard]] SWAPMM_EXPORT Profile one_iteration(const Profile& profile, std::size_t iteration);

/// When the last iteration ended; without iterations, when the last operation did. 0 where nothing ran.
[[nodiscard]] SWAPMM_EXPORT std::chrono::nanoseconds compute_end(const Profile& profile);

/// When everything in the profile has ended: not before compute_end().
[[nodiscard]] SWAPMM_EXPORT std::chrono::nanoseconds profile_end(const Profile& profile);

/// The time from the profile's beginning to compute_end() in which no operation ran.
[[nodiscard]] SWAPMM_EXPORT std::chrono::nanoseconds idle_time(const Profile& profile);

/// The bytes of all copies in a lane.
[[nodiscard]] SWAPMM_EXPORT Bytes bytes_copied(const Profile& profile, Lane lane);

/// The most bytes that were taken at one time.
[[nodiscard]] SWAPMM_EXPORT Bytes peak_used(const Profile& profile);

/// One line for a person (UTF-8): length of an iteration, idle time, bytes copied in and out, peak and budget.
[[nodiscard]] SWAPMM_EXPORT std::string describe(const Profile& profile);

}  // namespace swapmm
