// SPDX-License-Identifier: Apache-2.0
#pragma once

// For backends that can use files; not for programs.

#include <atomic>
#include <cstddef>
#include <exception>
#include <span>

#include <swapmm/backend/file_memory.hpp>
#include <swapmm/base/bytes.hpp>
#include <swapmm/base/error.hpp>

namespace swapmm::detail {

/// A read or a write of a file, which a backend has queued and runs once, on another thread. Keeps how it ended.
class FileTransfer {
 public:
  /// A read.
  FileTransfer(FileMemory& file, Bytes offset, std::span<std::byte> to) : file_(file), offset_(offset), to_(to) {}
  /// A write.
  FileTransfer(FileMemory& file, Bytes offset, std::span<const std::byte> from)
      : file_(file), offset_(offset), from_(from) {}
  FileTransfer(const FileTransfer&) = delete;
  FileTransfer& operator=(const FileTransfer&) = delete;
  ~FileTransfer() = default;

  /// Calls wait(), which returns whether the work before succeeded; then reads or writes. Keeps what either throws. If
  /// the work before failed, a write fails, and writes nothing.
  template <class Wait>
  void run(Wait&& wait) noexcept {
    try {
      const bool succeeded = wait();
      if (from_.empty()) {
        file_.read(offset_, to_);
      } else if (succeeded) {
        file_.write(offset_, from_);
      } else {
        throw BackendError(BackendError::Kind::failed, 0,
                           "what was to be written to " + file_.name() + " did not arrive: the work before it failed");
      }
    } catch (...) {
      failure_ = std::current_exception();
    }
    has_ended_.store(true, std::memory_order_release);
  }

  /// True once run() has ended with a failure. For any thread.
  [[nodiscard]] bool has_failed() const { return has_ended_.load(std::memory_order_acquire) && failure_ != nullptr; }
  /// Throws the failure if has_failed().
  void check() const {
    if (has_failed()) std::rethrow_exception(failure_);
  }

 private:
  FileMemory& file_;
  Bytes offset_;
  std::span<std::byte> to_;
  std::span<const std::byte> from_;
  std::exception_ptr failure_;  // valid once the transfer has ended
  std::atomic<bool> has_ended_{false};
};

}  // namespace swapmm::detail
