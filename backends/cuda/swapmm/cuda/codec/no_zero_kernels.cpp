// SPDX-License-Identifier: Apache-2.0
#include <swapmm/cuda/codec/zero_kernels.hpp>

namespace swapmm::cuda::detail {

const ZeroKernels* zero_kernels() { return nullptr; }

}  // namespace swapmm::cuda::detail
