// SPDX-License-Identifier: Apache-2.0
#pragma once

// Internal to the backend; not for programs. Also read by nvcc, as C++17.

namespace swapmm::cuda::detail {

/// The kernels of backends/codec, as cudaLaunchKernel() takes them.
struct ZeroKernels {
  /// Those for one size of an element.
  struct Element {
    const void* count;
    const void* pack;
    const void* unpack;
  };
  const void* scan_chunks;
  const void* begin_encode;
  const void* begin_decode;
  const void* move;
  Element elements[4];  ///< for 1, 2, 4 and 8 bytes
};

/// Null if the library was built without nvcc.
[[nodiscard]] const ZeroKernels* zero_kernels();

}  // namespace swapmm::cuda::detail
