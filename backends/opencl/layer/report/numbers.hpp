// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

// The numbers of a report, as they lie in memory that the layer shares with `swapmm run`: see
// docs/decisions/0020-report-at-a-signal.md. No pointers, no OpenCL.

namespace swapmm::opencl::layer {

/// Kinds of objects that are the driver's own: they are not swapped, and count.
enum class PassedThrough : std::uint8_t { image, pipe, shared_memory, graphics, buffer };
inline constexpr std::size_t passed_through_kinds = 5;

struct PassedObjects {
  std::uint64_t objects = 0;
  std::uint64_t bytes = 0;
};

/// What was done on one device. Times are in nanoseconds.
struct DeviceNumbers {
  std::array<char, 96> name{};
  std::uint64_t budget = 0;
  std::uint64_t wanted_peak = 0;
  std::uint64_t not_swapped_peak = 0;
  std::uint64_t largest_command = 0;
  std::uint64_t host_peak = 0;  ///< of the process
  std::uint64_t commands_refused = 0;
  std::uint64_t objects_refused = 0;
  std::array<PassedObjects, passed_through_kinds> passed{};

  // Sums over the device's contexts.
  std::uint64_t commands = 0;
  std::uint64_t by_plan = 0;
  std::uint64_t iterations = 0;
  std::uint64_t iterations_by_plan = 0;
  std::uint64_t plans_found = 0;
  std::uint64_t plan_starts = 0;
  std::uint64_t divergences = 0;
  std::uint64_t values_saved = 0;
  std::uint64_t saved_bytes = 0;
  std::uint64_t swap_ins = 0;
  std::uint64_t swap_outs = 0;
  std::uint64_t to_device = 0;
  std::uint64_t to_host = 0;
  std::uint64_t queue_waits = 0;
  std::uint64_t host_waits = 0;
  std::uint64_t host_wait_time = 0;
  std::uint64_t file_peak = 0;
  std::uint64_t file_read = 0;
  std::uint64_t file_written = 0;

  // Until the first command that followed a plan.
  std::uint64_t planned = 0;  ///< 1: there was one
  std::uint64_t commands_before = 0;
  std::uint64_t iterations_before = 0;
  std::uint64_t time_before = 0;  ///< since the device's first command

  // One round of the last plan, as it was predicted. 0 operations: there was none.
  std::uint64_t plan_operations = 0;
  std::uint64_t plan_iterations = 0;
  std::uint64_t plan_time = 0;
  std::uint64_t plan_compute_time = 0;
  std::uint64_t plan_bound = 0;  ///< no plan takes less; 0: not known
};

/// What `swapmm run` and the process have agreed on.
enum class PageState : std::uint32_t {
  running,     ///< `swapmm run` reports when the process has ended, however it does
  complete,    ///< the same, and the process ended by exit()
  on_its_own,  ///< `swapmm run` ends earlier: the process reports
};

/// One process. It alone writes, but for `state`. A device's numbers are written to the copy that is not published, so
/// the published ones are whole whenever the process ends.
struct ReportPage {
  static constexpr std::uint64_t known_layout = 0x73776170'6d6d0003U;
  struct Slot {
    std::atomic<std::uint32_t> published{0};  ///< counts; the last bit says which copy
    std::array<DeviceNumbers, 2> copies{};
  };

  std::atomic<std::uint64_t> layout{0};  ///< known_layout once the page is made
  std::uint64_t process = 0;
  std::uint64_t started = 0;            ///< by the monotonic clock
  std::atomic<std::uint64_t> ended{0};  ///< 0: not by exit()
  std::atomic<PageState> state{PageState::running};
  std::atomic<std::uint32_t> devices{0};  ///< slots in use
  std::array<Slot, 16> slots{};
  std::atomic<std::uint32_t> notes_size{0};
  std::array<char, 8192> notes{};  ///< lines, written at exit()
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free && std::atomic<PageState>::is_always_lock_free);

}  // namespace swapmm::opencl::layer
