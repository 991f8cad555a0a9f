// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <swapmm/plan/schedule/schedule.hpp>

namespace swapmm::planning {

/// A copy to the host that a stay owes: for a later swap_in of the same value, or for the host that reads it.
struct WriteBack {
  std::uint32_t gap = 0;                    ///< where it stands in the queue; counted on from the stay's start
  std::uint32_t write = 0;                  ///< the operation that gave the value, counted likewise
  std::optional<std::uint32_t> next_write;  ///< the operation of the same stay that changes it again
};

/// What follows from the trace for one stay. Operations and gaps are counted on from the stay's start.
struct StayFacts {
  std::uint32_t end = 0;  ///< that of the stay, or earlier: what owes nothing leaves right after its last use
  std::uint32_t first_use = 0;
  std::uint32_t last_use = 0;
  bool allocated = false;              ///< arrives by allocate; else by swap_in
  bool crosses_wrap = false;           ///< on the device between two iterations
  bool host_valid = false;             ///< the host copy is valid then, too
  std::uint32_t first_write_back = 0;  ///< in the list of all; a few in a row
  std::uint32_t write_backs = 0;
};

/// Facts of a stay; appends its write-backs to `write_backs`, by ascending gap.
[[nodiscard]] StayFacts find_stay_facts(const PlanningCase& planning, const Stay& stay, Pace pace,
                                        std::vector<WriteBack>& write_backs);

/// For how many operations from its start on nobody else gets the bytes of a stay.
[[nodiscard]] std::uint32_t packed_length(const PlanningCase& planning, const Stay& stay, const StayFacts& facts);

}  // namespace swapmm::planning
