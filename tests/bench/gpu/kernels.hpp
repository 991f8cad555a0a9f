// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

namespace swapmm::bench {

/// Queues a kernel that does nothing, and returns what the launch gave.
cudaError_t launch_empty(cudaStream_t stream);

}  // namespace swapmm::bench
