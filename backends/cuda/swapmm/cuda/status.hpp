// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include <cuda_runtime_api.h>

#include <swapmm/base/error.hpp>
#include <swapmm/base/export.hpp>

namespace swapmm::cuda {

/// True for failures after which every call fails. The device's context is gone, and only a new process can use the
/// device again.
[[nodiscard]] SWAPMM_EXPORT bool sticks(cudaError_t status);

/// The meaning of a status for the library: 2 is out_of_device_memory, statuses that stick are device_lost, all others
/// are failed.
[[nodiscard]] SWAPMM_EXPORT BackendError::Kind kind_of(cudaError_t status);

/// The error for a status that one of the backend's own calls returned, with a text such as "cudaMalloc of 4096 bytes:
/// cudaErrorMemoryAllocation (2): out of memory" and the kind of the status. Unless the status sticks,
/// cudaGetLastError() no longer returns it to the program.
[[nodiscard]] SWAPMM_EXPORT BackendError error_of(cudaError_t status, std::string_view call,
                                                  const std::string& detail = {});

/// Throws error_of() unless the status is cudaSuccess.
inline void check(cudaError_t status, std::string_view call) {
  if (status != cudaSuccess) throw error_of(status, call);
}

/// Clears the runtime's last error if it is this status, which one of the backend's own calls returned. Does nothing if
/// the status sticks, or if the last error is another one.
SWAPMM_EXPORT void forget(cudaError_t status) noexcept;

}  // namespace swapmm::cuda
