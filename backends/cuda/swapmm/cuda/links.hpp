// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace swapmm::cuda {

/// Measured bandwidths of copies between page-locked memory and the device, in bytes per second.
struct Links {
  std::uint64_t h2d = 0;           ///< host to device, alone
  std::uint64_t d2h = 0;           ///< device to host, alone
  std::uint64_t h2d_with_d2h = 0;  ///< host to device, while the other direction runs
  std::uint64_t d2h_with_h2d = 0;  ///< device to host, while the other direction runs
  int copy_engines = 0;            ///< 2: both directions run at the same time; 1: they take turns
  /// Slowdown of a kernel while copies to the device run: 1.02 is 2 % longer. The kernel only writes memory, so it is
  /// affected most.
  double kernel_beside_h2d = 1;
  double kernel_beside_d2h = 1;   ///< the same, for copies to the host
  double kernel_beside_both = 1;  ///< the same, for copies in both directions
};

}  // namespace swapmm::cuda
