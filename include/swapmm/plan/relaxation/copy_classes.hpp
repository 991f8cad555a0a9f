// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <swapmm/plan/relaxation/swap_model.hpp>

namespace swapmm::planning::relaxation {

/// The least time that the copies of a window take per byte of room that they free. It differs between tensors because
/// of latency, rounding and alignment.
struct CopyRate {
  double in = 0;   ///< nanoseconds per byte
  double out = 0;  ///< the same, for windows whose value must be written back
};

/// Windows in classes; the rate of a class is the least rate of its windows.
struct CopyClasses {
  static constexpr std::uint32_t none = 0xffffffff;  ///< class of windows without bytes

  std::vector<CopyRate> rates;       ///< per class
  std::vector<std::uint32_t> clean;  ///< the class of each clean window
  std::vector<std::uint32_t> dirty;  ///< the class of each dirty window
};

/// Makes at most this many classes (at least 1). Loses approximately as little as possible of the windows' copy times.
/// Takes windows x log windows.
[[nodiscard]] CopyClasses make_copy_classes(const SwapModel& model, std::size_t most);

}  // namespace swapmm::planning::relaxation
