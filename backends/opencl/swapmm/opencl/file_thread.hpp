// SPDX-License-Identifier: Apache-2.0
#pragma once

// Internal to the backend; not for programs.

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include <swapmm/backend/file_memory.hpp>
#include <swapmm/base/bytes.hpp>
#include <swapmm/opencl/handle.hpp>

namespace swapmm::opencl::detail {

/// A read or a write of a file, from the moment at which it is queued.
struct FileJob {
  FileMemory* file = nullptr;
  Bytes file_offset;
  std::span<std::byte> to;          ///< of a read
  std::span<const std::byte> from;  ///< of a write
  std::vector<Handle<cl_event>> waits;
  Handle<cl_event> done;               ///< a user event; complete once the job has ended, failed or not
  std::exception_ptr failure;          // valid once the job has ended
  std::atomic<bool> has_ended{false};  // set before `done` is complete

  [[nodiscard]] bool is_write() const { return !from.empty(); }
  [[nodiscard]] bool has_failed() const { return has_ended.load(std::memory_order_acquire) && failure != nullptr; }
};

/// Runs the jobs of one queue, one after the other, on a thread of its own, which is started by the first job. The
/// thread calls clWaitForEvents and clSetUserEventStatus.
class FileThread {
 public:
  FileThread() = default;
  FileThread(const FileThread&) = delete;
  FileThread& operator=(const FileThread&) = delete;
  /// Waits for all jobs.
  ~FileThread();

  /// Queues the job. If it throws, the job is not queued. Everything that it waits for must have been flushed.
  void add(std::shared_ptr<FileJob> job);
  /// Returns when no job is queued or runs.
  void finish();

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<FileJob>> jobs_;  // the first one runs
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace swapmm::opencl::detail
