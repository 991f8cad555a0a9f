// SPDX-License-Identifier: Apache-2.0
#include <swapmm/cuda/codec/zero_kernels.hpp>

#include "codec/all_kernels.h"

namespace swapmm::cuda::detail {

#define SWAPMM_ZERO_KERNEL(name) reinterpret_cast<const void*>(&swapmm_zero_##name)
#define SWAPMM_ZERO_KERNELS_OF(bytes) \
  { SWAPMM_ZERO_KERNEL(count_##bytes), SWAPMM_ZERO_KERNEL(pack_##bytes), SWAPMM_ZERO_KERNEL(unpack_##bytes) }

const ZeroKernels* zero_kernels() {
  static const ZeroKernels kernels{
      SWAPMM_ZERO_KERNEL(scan_chunks),
      SWAPMM_ZERO_KERNEL(begin_encode),
      SWAPMM_ZERO_KERNEL(begin_decode),
      SWAPMM_ZERO_KERNEL(move),
      {SWAPMM_ZERO_KERNELS_OF(1), SWAPMM_ZERO_KERNELS_OF(2), SWAPMM_ZERO_KERNELS_OF(4), SWAPMM_ZERO_KERNELS_OF(8)}};
  return &kernels;
}

}  // namespace swapmm::cuda::detail
