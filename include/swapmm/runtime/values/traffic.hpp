// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <swapmm/base/bytes.hpp>

namespace swapmm::runtime {

/// Counters since the manager was made.
struct Traffic {
  std::uint64_t swap_ins = 0;
  std::uint64_t swap_outs = 0;
  Bytes h2d;
  Bytes d2h;
  Bytes device_peak;
  Bytes from_file{};    ///< of h2d
  Bytes encoded_in{};   ///< of h2d: values that were decoded on their way
  Bytes encoded_out{};  ///< of d2h: values that were encoded on their way
};

}  // namespace swapmm::runtime
