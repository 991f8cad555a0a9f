// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <swapmm/plan/relaxation/swap_model.hpp>

namespace swapmm::planning::relaxation {

/// What the copies of a window take for each byte of room they free, at least: latency, rounding and alignment make
/// that differ from tensor to tensor.
struct CopyRate {
  double in = 0;   ///< nanoseconds per byte
  double out = 0;  ///< likewise, of windows whose value must be written back
};

/// Windows sorted into classes, each with the least rate of its windows.
struct CopyClasses {
  static constexpr std::uint32_t none = 0xffffffff;  ///< of windows without bytes

  std::vector<CopyRate> rates;       ///< per class
  std::vector<std::uint32_t> clean;  ///< per clean window its class
  std::vector<std::uint32_t> dirty;  ///< likewise
};

/// At most so many classes (at least 1), which lose as little of the windows' copy times as that allows, about.
/// Takes windows x log windows.
[[nodiscard]] CopyClasses make_copy_classes(const SwapModel& model, std::size_t most);

}  // namespace swapmm::planning::relaxation
