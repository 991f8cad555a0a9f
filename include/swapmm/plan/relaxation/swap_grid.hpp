// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <swapmm/plan/relaxation/swap_model.hpp>

namespace swapmm::planning::relaxation {

/// A group: consecutive parts that are treated as one.
struct PartGroup {
  double duration = 0;                ///< of its computations, nanoseconds
  double excess = 0;                  ///< excess at its most crowded boundary; if not above 0, the group has no row
  std::uint32_t row_boundary = 0;     ///< that boundary, or the first one of the group
  std::uint32_t first_operation = 0;  ///< the first operation in the group
  std::uint32_t operations = 0;       ///< number of operations; 0 if the group is only a stall

  [[nodiscard]] std::uint32_t first_part() const { return 2 * first_operation + (operations == 0 ? 1 : 0); }
};

/// The parts in groups. In a coarse grid the copies of a group may run in any order, so room that is freed in a group
/// is free in all of it. In an exact grid each part is a group.
struct SwapGrid {
  std::vector<PartGroup> groups;
  std::vector<std::uint32_t> group_of_part;
  bool is_exact = false;

  [[nodiscard]] int size() const { return static_cast<int>(groups.size()); }
  /// The group of any part, also in later iterations, where groups continue in the same way.
  [[nodiscard]] int group(std::uint32_t part) const {
    const auto parts = static_cast<std::uint32_t>(group_of_part.size());
    return static_cast<int>(part / parts) * size() + static_cast<int>(group_of_part[part % parts]);
  }
  /// The boundary of a group's row, also in later iterations.
  [[nodiscard]] std::uint32_t row_boundary(int group) const {
    const auto turn = static_cast<std::uint32_t>(group / size());
    return turn * static_cast<std::uint32_t>(group_of_part.size()) +
           groups[static_cast<std::size_t>(group % size())].row_boundary;
  }
};

/// The beginnings of a grid's groups. Each list is ascending.
struct GridCuts {
  std::vector<std::uint32_t> operations;  ///< operations with which a group begins; always includes 0
  std::vector<std::uint32_t> stalls;      ///< operations after which the stall is a group of its own
};

/// A grid in which each part is a group, with room counted at both ends of each computation.
[[nodiscard]] SwapGrid make_exact_grid(const SwapModel& model);

/// A grid with groups of operations and the stalls after them, with room counted at the most crowded operation.
[[nodiscard]] SwapGrid make_coarse_grid(const SwapModel& model, const GridCuts& cuts);

/// Cuts for about this many groups, of equal size by the mean of time and number of operations, and for the stalls
/// before which inputs arrive.
[[nodiscard]] GridCuts first_cuts(const SwapModel& model, std::size_t groups);

}  // namespace swapmm::planning::relaxation
