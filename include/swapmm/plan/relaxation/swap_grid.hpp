// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <swapmm/plan/relaxation/swap_model.hpp>

namespace swapmm::planning::relaxation {

/// Consecutive parts that are treated as one.
struct PartGroup {
  double duration = 0;                ///< of its computations, in nanoseconds
  double excess = 0;                  ///< at its most crowded boundary; if it is not above 0, there is no row
  std::uint32_t row_boundary = 0;     ///< that boundary, or the first one of the group
  std::uint32_t first_operation = 0;  ///< its first operation; for a stall alone, the one before it
  std::uint32_t operations = 0;       ///< number of operations; 0: a stall alone

  [[nodiscard]] std::uint32_t first_part() const { return 2 * first_operation + (operations == 0 ? 1 : 0); }
};

/// The parts in groups. In a coarse grid, copies of one group may run in any order, so room that is freed in a group
/// counts as free in all of it. In an exact grid, each part is a group.
struct SwapGrid {
  std::vector<PartGroup> groups;
  std::vector<std::uint32_t> group_of_part;
  bool is_exact = false;

  [[nodiscard]] int size() const { return static_cast<int>(groups.size()); }
  /// The group of a part. The numbers of parts and groups continue in later iterations.
  [[nodiscard]] int group(std::uint32_t part) const {
    const auto parts = static_cast<std::uint32_t>(group_of_part.size());
    return static_cast<int>(part / parts) * size() + static_cast<int>(group_of_part[part % parts]);
  }
  /// The boundary of a group's row. These numbers also continue in later iterations.
  [[nodiscard]] std::uint32_t row_boundary(int group) const {
    const auto turn = static_cast<std::uint32_t>(group / size());
    return turn * static_cast<std::uint32_t>(group_of_part.size()) +
           groups[static_cast<std::size_t>(group % size())].row_boundary;
  }
};

/// The operations and stalls with which the groups of a grid begin. Each list is ascending.
struct GridCuts {
  std::vector<std::uint32_t> operations;  ///< operations with which a group begins; 0 is one in any case
  std::vector<std::uint32_t> stalls;      ///< operations after which the stall is a group of its own
};

/// Makes a grid in which each part is a group, with room counted at both ends of each computation.
[[nodiscard]] SwapGrid make_exact_grid(const SwapModel& model);

/// Makes groups of operations and the stalls after them, with room counted at the most crowded operation.
[[nodiscard]] SwapGrid make_coarse_grid(const SwapModel& model, const GridCuts& cuts);

/// Cuts about this many groups, equal in the mean of their share of the time and their share of the operations. Up to
/// `stalls` stalls, those in which the arrivals of the largest inputs may begin, are groups of their own.
[[nodiscard]] GridCuts first_cuts(const SwapModel& model, std::size_t groups, std::size_t stalls);

}  // namespace swapmm::planning::relaxation
