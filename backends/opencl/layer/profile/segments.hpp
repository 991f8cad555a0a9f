// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include <swapmm/ir/profile.hpp>

// A recording is made of segments, because a profile needs memory for all that it times. No OpenCL.

namespace swapmm::opencl::layer {

/// An iteration that began and ended in a segment, and was not left early.
struct WholeIteration {
  std::size_t index = 0;  ///< in the profile
  std::uint64_t commands = 0;
};

/// What ran on the device from one start of the profiler to its stop. Nothing was in flight at either.
struct Segment {
  Profile profile;
  std::chrono::nanoseconds start{0};  ///< when the profile's time 0 was, by a clock that all segments share
  std::vector<WholeIteration> iterations;
  std::uint64_t commands = 0;
};

/// What is left of a context's recording, in order.
struct Recorded {
  std::uint64_t context = 0;  ///< contexts count from 1
  std::deque<Segment> segments;
  std::uint64_t spans = 0;          ///< of all segments
  std::uint64_t commands = 0;       ///< of all segments
  std::uint64_t commands_lost = 0;  ///< of segments that were let go, or could not be recorded
};

/// Adds a segment, and lets the oldest ones go as long as the others have at least `most` spans.
void add_segment(Recorded& recorded, Segment segment, std::uint64_t most);

/// All segments as one profile, whose time 0 is `origin`. A segment never begins before the one before has ended, also
/// if the clocks of host and device differ. The budget is the largest one.
[[nodiscard]] Profile joined(const Recorded& recorded, std::chrono::nanoseconds origin);

/// An iteration as a picture of the program.
struct TypicalIteration {
  std::uint64_t commands = 0;
  Profile profile;  ///< see one_iteration()
};

/// The last iteration of the length that most commands belong to: programs end with others, and short sequences in
/// between repeat, too. Nothing if no segment has a whole iteration.
[[nodiscard]] std::optional<TypicalIteration> typical_iteration(const Recorded& recorded);

}  // namespace swapmm::opencl::layer
