// SPDX-License-Identifier: Apache-2.0
#pragma once

// Internal to the backend; not for programs.

#include <memory>

#include <cuda_runtime_api.h>

#include <swapmm/backend/file_transfer.hpp>

namespace swapmm::cuda::detail {

/// Queues the transfer: the stream runs it in its order, on a thread of the driver. It exists at least until it has
/// ended. If the stream never comes to it, because the device is lost, it exists for ever. Throws BackendError.
void queue_transfer(const std::shared_ptr<swapmm::detail::FileTransfer>& transfer, cudaStream_t stream);

}  // namespace swapmm::cuda::detail
