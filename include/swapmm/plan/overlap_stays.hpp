// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include <swapmm/plan/overlap_ledger.hpp>
#include <swapmm/plan/schedule.hpp>

namespace swapmm {

/// How one schedule of many is made.
struct OverlapChoice {
  std::uint64_t bytes = 0;       ///< never more than this on the device
  std::uint64_t stay_bytes = 0;  ///< tensors stay over absences only up to this: the rest is room for early copies
};

/// Steps b to e of the heuristic: who stays, who leaves when, and under which operations it comes back. Changes the
/// decisions in `ledger` only.
[[nodiscard]] std::vector<Stay> overlap_stays(OverlapLedger& ledger, const OverlapChoice& choice);

}  // namespace swapmm
