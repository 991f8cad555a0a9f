// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <swapmm/plan/v2/relaxation/store_model.hpp>

namespace swapmm::v2::planning {

/// Operations in groups of consecutive ones, each with the stall after it.
struct OperationGroups {
  std::vector<std::uint32_t> group_of;  ///< per operation
  std::vector<std::uint32_t> members;   ///< per group: its number of operations

  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(members.size()); }
};

/// Makes this many groups, about equal in the mean of their share of time and of operations. Some may be empty.
[[nodiscard]] OperationGroups make_groups(const StoreModel& model, std::uint32_t groups);

/// Which window of each written value pays for the copy out. The others are treated as free, or as paying again.
struct PayingStores {
  std::vector<std::uint32_t> main;    ///< per value, counted from its first window; empty: they share the cost
  std::vector<bool> others_are_free;  ///< per value
};

/// A solution of the program over groups of operations. Values with several absences are treated as several values, so
/// prices are about the best, and the rest is a guide.
struct GroupSolution {
  bool is_solved = false;
  std::vector<double> room;                ///< per group: of a byte at its most crowded operation, nanoseconds
  std::vector<std::uint32_t> crowded;      ///< per group: that operation
  std::vector<std::vector<double>> rates;  ///< per rate and group
  std::vector<std::vector<double>> space;  ///< per store and group: of a byte, nanoseconds
  std::vector<double> stall;               ///< per group, nanoseconds
  /// Per clean window, then per dirty window, and store: how much of it is away there, 0 to 1.
  std::vector<std::vector<double>> clean;
  std::vector<std::vector<double>> dirty;
};

/// Solves that program, if it has at most so many unknowns.
[[nodiscard]] GroupSolution solve_groups(const StoreModel& model, const OperationGroups& groups,
                                         const PayingStores& paying, std::size_t most_unknowns);

}  // namespace swapmm::v2::planning
