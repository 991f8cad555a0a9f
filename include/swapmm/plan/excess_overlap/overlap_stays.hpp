// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include <swapmm/plan/planner_options.hpp>
#include <swapmm/plan/problem/overlap_ledger.hpp>
#include <swapmm/plan/schedule/schedule.hpp>

namespace swapmm::planning {

/// Says how one schedule of many is made.
struct OverlapChoice {
  std::uint64_t bytes = 0;       ///< most bytes on the device at one time
  std::uint64_t stay_bytes = 0;  ///< tensors stay over absences up to this; the rest is for early copies
  /// Absences over which tensors stay from the start, by position in the ledger; they fit into `bytes`. Empty: none.
  std::vector<bool> decided{};
  /// An absence over which its tensor goes out in any case.
  std::uint32_t goes_out = no_absence;
  /// The order in which absences are tried for a stay. Empty: OverlapLedger::shortest_first.
  std::vector<std::uint32_t> order{};
};

/// The absences over which tensors stay, by position in the ledger, and the bytes within which that was decided.
struct OverlapDecision {
  std::uint64_t bytes = 0;
  std::vector<bool> stays;
};
[[nodiscard]] std::vector<bool> decided_stays(const OverlapLedger& ledger);

/// Decides which tensors stay, when the others leave, and under which operations they come back: the steps of the
/// heuristic (docs/planning.md). Changes only the decisions in `ledger`.
[[nodiscard]] std::vector<Stay> overlap_stays(OverlapLedger& ledger, const OverlapChoice& choice,
                                              const HidingOptions& options = {});

}  // namespace swapmm::planning
