// SPDX-License-Identifier: Apache-2.0
#pragma once

// Internal to the backend; not for programs.

#include <atomic>
#include <cstddef>
#include <exception>
#include <memory>
#include <span>

#include <cuda_runtime_api.h>

#include <swapmm/backend/file_memory.hpp>
#include <swapmm/base/bytes.hpp>

namespace swapmm::cuda::detail {

/// A read or a write of a file that a stream runs on a thread of the driver, in its order.
struct FileJob {
  FileMemory* file = nullptr;
  Bytes offset;
  std::span<std::byte> to;          ///< of a read
  std::span<const std::byte> from;  ///< of a write

  std::exception_ptr failure;  // valid once the job has ended
  std::atomic<bool> has_ended{false};

  [[nodiscard]] bool has_failed() const { return has_ended.load(std::memory_order_acquire) && failure != nullptr; }

  /// Queues the job. It exists at least until it has ended. If the stream never comes to it, because the device is
  /// lost, it exists for ever. Throws BackendError.
  static void queue(const std::shared_ptr<FileJob>& job, cudaStream_t stream);
};

}  // namespace swapmm::cuda::detail
