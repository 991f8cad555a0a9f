// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace swapmm::cuda {

/// What copies between page-locked memory and the device take, as measured; bytes per second.
struct Links {
  std::uint64_t h2d = 0;           ///< host to device, alone
  std::uint64_t d2h = 0;           ///< device to host, alone
  std::uint64_t h2d_with_d2h = 0;  ///< host to device, while the other direction runs
  std::uint64_t d2h_with_h2d = 0;  ///< device to host, likewise
  int copy_engines = 0;            ///< 2: both directions run at the same time; 1: they take turns
  /// How much longer a kernel takes that does nothing but write memory, and so suffers most, while copies run in that
  /// direction, or both: 1.02 is 2 % longer.
  double kernel_beside_h2d = 1;
  double kernel_beside_d2h = 1;   ///< likewise
  double kernel_beside_both = 1;  ///< likewise
};

}  // namespace swapmm::cuda
