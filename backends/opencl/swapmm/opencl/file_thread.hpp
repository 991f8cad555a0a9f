// SPDX-License-Identifier: Apache-2.0
#pragma once

// Internal to the backend; not for programs.

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include <swapmm/backend/file_transfer.hpp>
#include <swapmm/base/bytes.hpp>
#include <swapmm/opencl/handle.hpp>

namespace swapmm::opencl::detail {

/// A transfer, from the moment at which it is queued.
struct FileJob {
  template <class Span>
  FileJob(FileMemory& file, Bytes offset, Span bytes) : transfer(file, offset, bytes) {}

  swapmm::detail::FileTransfer transfer;
  std::vector<Handle<cl_event>> waits;
  Handle<cl_event> done;  ///< a user event; complete once the transfer has ended, failed or not
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
