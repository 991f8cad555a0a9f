// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include <swapmm/plan/problem/overlap_ledger.hpp>
#include <swapmm/plan/simulate.hpp>

namespace swapmm::planning {

/// Counts time in which operations wait as time for copies, too.
inline void count_stalls(const Simulation& simulation, OverlapLedger& ledger) {
  const std::uint32_t n = ledger.planning.operations;
  const std::vector<Span>& spans = simulation.operations;
  for (std::uint32_t i = 0; i < n; ++i) {
    // The first operation's start counts from the end of the iteration before.
    const std::chrono::nanoseconds next = i + 1 < n ? spans[i + 1].start - spans[i].end : spans[0].start;
    ledger.time[i] = ledger.planning.trace.operations[i].duration + next;
  }
}

}  // namespace swapmm::planning
