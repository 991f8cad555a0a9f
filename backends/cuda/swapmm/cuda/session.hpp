// SPDX-License-Identifier: Apache-2.0
#pragma once

// Internal to the backend; not for programs.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <vector>

#include <cuda_runtime_api.h>

#include <swapmm/backend/backend.hpp>
#include <swapmm/cuda/backend.hpp>
#include <swapmm/cuda/handle.hpp>

namespace swapmm::cuda::detail {

/// While it exists, the given device is the thread's current one, on which the API creates objects. The destructor
/// restores the caller's device.
class CurrentDevice {
 public:
  /// Throws BackendError if the device cannot be made the current one: another process has it for itself, or it has no
  /// memory for a context. The next call would work on the other device then.
  explicit CurrentDevice(int device, bool needed = true);
  /// For what gives memory back and waits, which is the same on every device.
  CurrentDevice(std::nothrow_t, int device, bool needed = true) noexcept;
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;
  ~CurrentDevice();

 private:
  int before_ = -1;  // -1: it was the current one
};

/// The state of the work that was queued in a capture.
class Capture {
 public:
  enum class State {
    open,    // more is being queued
    failed,  // it never ran, and may never run
    runs,    // its graph was launched
  };
  State state = State::open;
  EventHandle done;  // after the latest launch
};

class Session {
 public:
  Session(int device, const Settings& settings);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session();

  /// The stream of a queue. Streams of files are made when they are first asked for.
  [[nodiscard]] cudaStream_t stream(QueueKind queue) const {
    if (index(queue) >= base_queue_count && !own[index(queue)]) make_stream(queue);
    return streams[index(queue)];
  }
  /// The event to wait for, or null if no wait is needed.
  [[nodiscard]] cudaEvent_t native(const Event& event) const;
  /// Makes the queue wait for all of the events.
  void queue_waits(QueueKind queue, std::span<const Event* const> waits) const;
  void record(QueueKind queue, Event& event) const;
  /// An event behind what was queued on the stream of operations so far, for other streams. The next call moves it.
  [[nodiscard]] cudaEvent_t reached_by_compute();
  /// Memory that the backend gave out, and how it was taken.
  struct Memory {
    enum Kind : std::uint8_t { device, pinned, pageable };
    std::byte* data;
    Kind kind;
  };
  /// Waits for the device and frees the memory. In a capture the API frees nothing, so this happens when the capture
  /// has ended.
  void end_memory(const Memory& memory) noexcept;

  /// Returns when nothing runs any more. Throws only if the device is lost. In a capture nothing runs.
  void finish();
  void finish_quietly() noexcept;

  int device;
  Capabilities capabilities;
  std::optional<int> numa_node;                       // the device's node
  mutable std::array<StreamHandle, queue_count> own;  // empty for the program's stream
  mutable std::array<cudaStream_t, queue_count> streams{};
  std::array<EventHandle, base_queue_count> joints;  // forks and joins of the streams around a capture
  EventHandle reached;                               // by the stream of operations, for another one; made when needed
  std::shared_ptr<Capture> capture;                  // the open capture; null if there is none
  bool default_stream = false;  // operations run on a default stream, which is the one of the thread's current device
  bool timing = false;
  bool nvtx = false;

 private:
  void make_stream(QueueKind queue) const;
  /// Calls visit(stream) for each one that there is.
  template <class Visit>
  void for_each_stream(Visit&& visit) const {
    for (std::size_t i = 0; i < queue_count; ++i) {
      if (i < base_queue_count || own[i]) visit(streams[i]);
    }
  }
  void free_waiting() noexcept;
  std::vector<Memory> waiting_;  // to be freed at the end of a capture
};

// Suits caches as well as DMA engines.
inline constexpr std::align_val_t host_alignment{4096};

/// A new event of the current device.
[[nodiscard]] EventHandle new_event(unsigned flags);

}  // namespace swapmm::cuda::detail
