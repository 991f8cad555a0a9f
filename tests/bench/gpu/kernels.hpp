// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

namespace swapmm::bench {

/// Queues a kernel that does nothing, and returns what the launch gave.
cudaError_t launch_empty(cudaStream_t stream);

/// Queues a kernel of so many groups that copies an encoded value of the zero codec, whose size its header tells. Either
/// memory may be page-locked memory of the host. Both begin at a multiple of 16.
cudaError_t launch_move(cudaStream_t stream, const void* from, void* to, unsigned groups);

}  // namespace swapmm::bench
