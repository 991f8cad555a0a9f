// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/v2/machine.hpp>
#include <swapmm/plan/v2/plan.hpp>

// What may happen to one tensor in an iteration of a plan, for the exact search of plans.

namespace swapmm::test::general {

/// A copy that may stand anywhere in its gap, and the places that are given back right behind it.
struct Move {
  std::size_t gap = 0;
  v2::Command copy;
  std::vector<v2::Command> releases;
};

/// Everything that happens to one tensor in an iteration. Gap g is between operations g - 1 and g.
struct Itinerary {
  std::vector<std::pair<std::size_t, v2::Command>> first;  ///< at the beginning of a gap: places are given back
  std::vector<Move> moves;
  std::vector<std::pair<std::size_t, v2::Command>> last;  ///< at the end of a gap: places for writes
  std::vector<v2::MemoryId> permanent;                    ///< memories with a limit that keep a place of it for good
  std::vector<bool> held;                                 ///< for each operation, whether the device has it meanwhile
};

/// All itineraries of a tensor that operations of the device use.
[[nodiscard]] std::vector<Itinerary> list_itineraries(const Trace& trace, const v2::Machine& machine,
                                                      v2::MemoryId device, TensorId tensor);

}  // namespace swapmm::test::general
