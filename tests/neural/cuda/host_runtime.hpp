// SPDX-License-Identifier: Apache-2.0
#pragma once

// CUDA's functions on the host: see host_runtime.cpp and host_libraries.cpp.

#include <cuda_runtime_api.h>

namespace swapmm::test {

/// The next cudaLaunchKernel() does nothing and returns the status.
void fail_next_launch(cudaError_t status);

/// Of more input channels than that, cuDNN on the host does nothing.
inline constexpr int most_channels = 512;

}  // namespace swapmm::test
