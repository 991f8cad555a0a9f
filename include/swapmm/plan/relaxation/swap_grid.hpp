// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <swapmm/plan/relaxation/swap_model.hpp>

namespace swapmm::planning::relaxation {

/// Parts that follow one another, taken as one.
struct PartGroup {
  double duration = 0;                ///< of its computations, nanoseconds
  double excess = 0;                  ///< at its most crowded boundary; not above 0: no row
  std::uint32_t row_boundary = 0;     ///< that boundary, or the first one of the group
  std::uint32_t first_operation = 0;  ///< whose computation is in it
  std::uint32_t operations = 0;       ///< 0: a stall alone

  [[nodiscard]] std::uint32_t first_part() const { return 2 * first_operation + (operations == 0 ? 1 : 0); }
};

/// The parts in groups. In a coarse grid copies of one group may run in any order, so that room which is freed in a
/// group is free in all of it; in an exact one each part is a group.
struct SwapGrid {
  std::vector<PartGroup> groups;
  std::vector<std::uint32_t> group_of_part;
  bool is_exact = false;

  [[nodiscard]] int size() const { return static_cast<int>(groups.size()); }
  /// Of any part, also of later iterations: groups go on likewise.
  [[nodiscard]] int group(std::uint32_t part) const {
    const auto parts = static_cast<std::uint32_t>(group_of_part.size());
    return static_cast<int>(part / parts) * size() + static_cast<int>(group_of_part[part % parts]);
  }
  /// The boundary of a group's row, likewise.
  [[nodiscard]] std::uint32_t row_boundary(int group) const {
    const auto turn = static_cast<std::uint32_t>(group / size());
    return turn * static_cast<std::uint32_t>(group_of_part.size()) +
           groups[static_cast<std::size_t>(group % size())].row_boundary;
  }
};

/// Where a grid's groups begin. Each list ascending.
struct GridCuts {
  std::vector<std::uint32_t> operations;  ///< with which a group begins; 0 is one in any case
  std::vector<std::uint32_t> stalls;      ///< operations behind which the stall is a group of its own
};

/// Each part on its own, with room counted at both ends of each computation.
[[nodiscard]] SwapGrid make_exact_grid(const SwapModel& model);

/// Groups of operations and the stalls behind them, with room counted at the most crowded operation.
[[nodiscard]] SwapGrid make_coarse_grid(const SwapModel& model, const GridCuts& cuts);

/// About so many groups, equal in the mean of their time and their count of operations, and `stalls` of the stalls in
/// front of which inputs come.
[[nodiscard]] GridCuts first_cuts(const SwapModel& model, std::size_t groups, std::size_t stalls);

}  // namespace swapmm::planning::relaxation
