// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include <cuda_runtime_api.h>

#include <swapmm/base/error.hpp>
#include <swapmm/base/export.hpp>

namespace swapmm::cuda {

/// True for failures after which every call fails: the device's context is gone, and the process must end to use the
/// device again.
[[nodiscard]] SWAPMM_EXPORT bool sticks(cudaError_t status);

/// What a status means to the library: 2 is out_of_device_memory, what sticks device_lost, the rest failed.
[[nodiscard]] SWAPMM_EXPORT BackendError::Kind kind_of(cudaError_t status);

/// "cudaMalloc of 4096 bytes: cudaErrorMemoryAllocation (2): out of memory", with the kind that the status means. For a
/// status that a call of ours returned: it is no longer what cudaGetLastError() returns to the program then, unless it
/// sticks.
[[nodiscard]] SWAPMM_EXPORT BackendError error_of(cudaError_t status, std::string_view call,
                                                  const std::string& detail = {});

/// Throws error_of() unless the status is cudaSuccess.
inline void check(cudaError_t status, std::string_view call) {
  if (status != cudaSuccess) throw error_of(status, call);
}

/// Takes a status that our own call returned out of the runtime's record of the last error, unless it sticks or another
/// one stands there.
SWAPMM_EXPORT void forget(cudaError_t status) noexcept;

}  // namespace swapmm::cuda
