// SPDX-License-Identifier: Apache-2.0
#pragma once

// Internal to the backend; not for programs.

#include <array>
#include <utility>
#include <vector>

#include <swapmm/backend/backend.hpp>
#include <swapmm/base/error.hpp>
#include <swapmm/opencl/file_thread.hpp>
#include <swapmm/opencl/handle.hpp>

namespace swapmm::opencl::detail {

/// One of the three in-order queues. Profiling slows commands down on real drivers, so there are two queues: one
/// without profiling, and one with it, made when times are first requested. Changing from one to the other keeps the
/// order.
class Lane {
 public:
  /// `own`: the library made the queue, and may add one with profiling. A queue of the program is used as it is.
  /// The queue is made when it is first used.
  Lane() = default;
  Lane(Handle<cl_command_queue> queue, bool own) : plain_(std::move(queue)), own_(own) {}

  /// The queue for the next command.
  [[nodiscard]] cl_command_queue& use(cl_context context, cl_device_id device, bool profiled) {
    if (current_ == nullptr) make(context, device);
    if (own_ && profiled != profiled_now_) change(context, device, profiled);
    used_ = true;
    return current_;
  }
  void flush() const;
  /// Returns when nothing runs any more on either queue.
  void finish() const;

 private:
  void make(cl_context context, cl_device_id device);
  void change(cl_context context, cl_device_id device, bool profiled);

  Handle<cl_command_queue> plain_;
  Handle<cl_command_queue> profiled_;
  cl_command_queue current_ = plain_.get();
  bool own_ = true;
  bool profiled_now_ = false;
  bool used_ = false;  // something may be queued on the current one
};

/// See in_forked_child().
[[nodiscard]] bool is_forked_child() noexcept;

/// Throws the error of a lost device in a forked child: see in_forked_child().
void require_own_process();

/// Throws for a call that was to allocate `size` bytes: an error of the kind `refused` if the driver refuses memory.
void check_allocation(cl_int status, const char* call, Bytes size, BackendError::Kind refused);

/// A reference to the event of a queued command. If the driver refuses, calls flush() and waits until the command has
/// ended; none then.
template <class Flush>
[[nodiscard]] Handle<cl_event> keep_event(cl_event event, Flush&& flush) {
  auto kept = Handle<cl_event>::retain(event);
  if (!kept) {
    flush();
    clWaitForEvents(1, &event);
  }
  return kept;
}

class Session {
 public:
  Session(cl_context context, cl_device_id device, cl_command_queue queue);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session();

  [[nodiscard]] cl_command_queue& use(QueueKind queue) {
    require_own_process();
    return lanes[index(queue)].use(context.get(), device, timing && !host_timed);
  }
  /// See keep_event().
  [[nodiscard]] Handle<cl_event> keep(cl_event event) const {
    return keep_event(event, [this] { flush_for_wait(); });
  }
  /// Flushes all queues that can be flushed, before a wait that reports errors. Throws only if the device is lost.
  void flush_for_wait() const;
  /// Returns when nothing runs any more on any lane, also after failures. Throws only if the device is lost.
  void finish() const;

  /// Runs the reads, or the writes, of files.
  [[nodiscard]] FileThread& file_thread(QueueKind queue) { return file_threads_[index(queue) - device_queue_count]; }

  /// @{
  /// Queues of neighbours, whose commands depend on those of the lanes and the other way round. They are flushed and
  /// finished together.
  [[nodiscard]] Handle<cl_command_queue> add_neighbour_queue(cl_device_id neighbour);
  void remove_neighbour_queue(cl_command_queue queue) noexcept;
  /// @}
  /// @{
  /// The last wait that was queued on a lane for neighbours: their queues must wait for it, too. Null: none.
  [[nodiscard]] cl_event barrier_of(QueueKind queue) const { return barriers_[barrier_index(queue)].get(); }
  void set_barrier(QueueKind queue, Handle<cl_event> barrier) { barriers_[barrier_index(queue)] = std::move(barrier); }
  /// @}

  Handle<cl_context> context;
  cl_device_id device;
  Capabilities capabilities;
  std::array<Lane, device_queue_count> lanes;
  Handle<cl_command_queue> chores;  ///< for mapping, unmapping and first touches; waits for no copy
  bool timing = false;
  /// True if the program's queue cannot profile, so the host waits for each timed command and takes the time itself.
  bool host_timed = false;
  /// NVIDIA's driver (580.159, copies below 1 MiB) reads memory that is not page-locked while it queues a copy to the
  /// device, whatever the copy waits for. What the memory is to hold must be there by then, so the host waits for it.
  bool reads_pageable_early = false;

 private:
  static std::size_t barrier_index(QueueKind queue) { return index(queue) - index(QueueKind::neighbour_in); }

  std::array<Handle<cl_event>, 2 * neighbour_path_count> barriers_;
  std::vector<cl_command_queue> neighbour_queues_;  // their links own them
  mutable std::array<FileThread, queue_count - device_queue_count> file_threads_;
};

}  // namespace swapmm::opencl::detail
