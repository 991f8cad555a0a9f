// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include <swapmm/plan/machine.hpp>

namespace swapmm::planning {

/// The same machine with links that have only a part of their bandwidth.
[[nodiscard]] inline Machine with_slower_links(Machine machine, double part) {
  for (Link* const link : {&machine.h2d, &machine.d2h}) {
    const double slower = static_cast<double>(link->bytes_per_second) * part;
    link->bytes_per_second = std::max<std::uint64_t>(1, static_cast<std::uint64_t>(slower));
  }
  return machine;
}

}  // namespace swapmm::planning
