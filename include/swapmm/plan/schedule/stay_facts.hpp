// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <swapmm/plan/schedule/schedule.hpp>

namespace swapmm::planning {

/// A copy to the host that a stay needs, for a later swap_in of the same value or for a host read.
struct WriteBack {
  std::uint32_t gap = 0;                    ///< its place in the queue; counted from the stay's start
  std::uint32_t write = 0;                  ///< the operation that wrote the value, counted in the same way
  std::optional<std::uint32_t> next_write;  ///< the operation of the same stay that changes it again
};

/// Facts that follow from the trace for one stay. Operations and gaps are counted from the stay's start on.
struct StayFacts {
  std::uint32_t end = 0;  ///< end of the stay, or earlier: a stay that needs no copy ends when its value is dead
  std::uint32_t first_use = 0;
  std::uint32_t last_use = 0;
  bool lingers = false;                ///< it ends later than after its last use, because the value lingers
  bool allocated = false;              ///< true: arrives by allocate; false: by swap_in
  bool crosses_wrap = false;           ///< on the device between two iterations
  bool host_valid = false;             ///< the host copy is valid between two iterations, too
  std::uint32_t first_write_back = 0;  ///< position in the list of all write-backs; those of a stay are consecutive
  std::uint32_t write_backs = 0;
};

/// Computes the facts of a stay, and appends its write-backs to `write_backs` by ascending gap.
[[nodiscard]] StayFacts find_stay_facts(const PlanningCase& planning, const Stay& stay, Pace pace,
                                        std::vector<WriteBack>& write_backs);

/// The number of operations from its start on for which no other stay gets the bytes of a stay.
[[nodiscard]] std::uint32_t packed_length(const PlanningCase& planning, const Stay& stay, const StayFacts& facts);

}  // namespace swapmm::planning
