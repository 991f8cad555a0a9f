// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include <swapmm/plan/planner_options.hpp>
#include <swapmm/plan/problem/overlap_ledger.hpp>
#include <swapmm/plan/schedule/schedule.hpp>

namespace swapmm::planning {

/// How one schedule of many is made.
struct OverlapChoice {
  std::uint64_t bytes = 0;       ///< never more than this on the device
  std::uint64_t stay_bytes = 0;  ///< tensors stay over absences only up to this: the rest is room for early copies
  /// Absences over which tensors stay from the start, by position in the ledger; they fit into `bytes`. Empty: none.
  std::vector<bool> decided{};
  /// An absence over which its tensor goes out, come what may.
  std::uint32_t goes_out = no_absence;
  /// In which order absences are tried for a stay. Empty: OverlapLedger::shortest_first.
  std::vector<std::uint32_t> order{};
};

/// Over which absences tensors stay, by position in the ledger, and within how many bytes that was decided.
struct OverlapDecision {
  std::uint64_t bytes = 0;
  std::vector<bool> stays;
};
[[nodiscard]] std::vector<bool> decided_stays(const OverlapLedger& ledger);

/// Steps b to e of the heuristic: who stays, who leaves when, and under which operations it comes back. Changes the
/// decisions in `ledger` only.
[[nodiscard]] std::vector<Stay> overlap_stays(OverlapLedger& ledger, const OverlapChoice& choice,
                                              const HidingOptions& options = {});

}  // namespace swapmm::planning
