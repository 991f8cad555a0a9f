// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include <swapmm/interface/report.hpp>

#include "../context.hpp"
#include "segments.hpp"

namespace swapmm::opencl::layer {

/// What runs on the device for one context, and when. All with the device's lock. Nothing here throws: if the device
/// does not tell, less is recorded.
class Recording {
 public:
  /// Both must outlive this. Begins the first segment.
  Recording(Core& core, const Iterations& iterations, std::uint64_t context);
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  /// Called after each command. Ends a segment that has become long, and begins the next one, which waits for the
  /// device.
  void command_done() noexcept;

  /// Ends the segment. Waits for the device. The runtime then records no profile any more, whatever failed.
  void pause() noexcept;
  /// Begins a segment after pause(), unless the recording has ended.
  void go_on() noexcept;

  /// Ends the segment if everything has ended before `until`, and returns true. Otherwise the segment is not part of
  /// what is recorded.
  [[nodiscard]] bool finish(std::chrono::steady_clock::time_point until) noexcept;

  /// What was recorded. The recording has ended then.
  [[nodiscard]] Recorded take() noexcept;

 private:
  [[nodiscard]] std::uint64_t commands();
  void begin();
  void cut();
  void note_iteration();

  Core& core_;
  const Iterations& iterations_;
  Recorded recorded_;
  Report counts_;       // made once, for its texts' memory
  bool on_ = false;     // a segment is being recorded
  bool ended_ = false;  // nothing will be recorded any more
  std::chrono::milliseconds patience_{500};
  std::chrono::nanoseconds start_;  // of the segment, as all that follows
  std::uint64_t commands_before_ = 0;
  std::uint64_t work_before_ = 0;
  std::uint64_t next_cut_ = 0;  // work at which ending it is tried
  std::uint64_t iterations_before_ = 0;
  std::uint64_t last_noted_ = 0;  // iteration
  bool begins_inside_ = false;    // an iteration
  std::vector<WholeIteration> whole_;
};

}  // namespace swapmm::opencl::layer
