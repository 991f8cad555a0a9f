// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include <swapmm/plan/problem/overlap_ledger.hpp>
#include <swapmm/plan/schedule/schedule.hpp>

namespace swapmm::planning {

/// Parameters for one of many schedules.
struct OverlapChoice {
  std::uint64_t bytes = 0;       ///< most bytes on the device
  std::uint64_t stay_bytes = 0;  ///< most bytes for tensors that stay over absences; the rest is room for early copies
  /// Absences over which tensors stay from the start, by position in the ledger; they fit into `bytes`. Empty: none.
  std::vector<bool> decided{};
  /// An absence over which the tensor goes out in any case.
  std::uint32_t goes_out = no_absence;
  /// The order in which absences are tried for a stay. Empty: OverlapLedger::shortest_first.
  std::vector<std::uint32_t> order{};
};

/// The absences over which tensors stay, by position in the ledger, and the bytes that the decision was made for.
struct OverlapDecision {
  std::uint64_t bytes = 0;
  std::vector<bool> stays;
};
[[nodiscard]] std::vector<bool> decided_stays(const OverlapLedger& ledger);

/// Steps 2 to 5 of the heuristic in docs/planning.md: decides which tensors stay, when the others leave, and which
/// operations hide their return. Changes only the decisions in `ledger`.
[[nodiscard]] std::vector<Stay> overlap_stays(OverlapLedger& ledger, const OverlapChoice& choice);

}  // namespace swapmm::planning
