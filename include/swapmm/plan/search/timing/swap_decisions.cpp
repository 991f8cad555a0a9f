// SPDX-License-Identifier: Apache-2.0
// Writes the decisions of a pass into the ledger.
#include <algorithm>
#include <utility>

#include <swapmm/plan/search/timing/swap_timing.hpp>
#include <swapmm/plan/search/timing/timing_numbers.hpp>

namespace swapmm::planning {
namespace {

/// Finds room for tensors that leave late: their copies still run when their bytes are due to other tensors. Whichever
/// tensor got those bytes would wait for the copy. So, if there is room, no tensor gets them until the copy has ended.
class LateLeaving {
 public:
  LateLeaving(const std::vector<std::int64_t>& gap_starts, const std::vector<std::int64_t>& held, std::int64_t budget)
      : operations_(static_cast<std::uint32_t>(held.size())), starts_(gap_starts), above_(above(held, budget)) {}

  /// Returns the number of operations, from gap `leaves` on, for which the bytes are kept, and takes the room for them.
  /// The tensor has left at the time `left`, and is back after `most` operations.
  std::uint32_t operations_of(std::uint32_t leaves, double left, std::uint32_t most, std::int64_t bytes) {
    const std::uint32_t first = leaves % operations_;
    const std::uint32_t late = starts_.until_above(first, operations_, whole(left) - 1) - first;
    const std::uint32_t end = first + std::min(late, most);
    const std::uint32_t operations = above_.until_above(first, end, -bytes) - first;
    if (operations > 0) above_.add(first, first + operations, bytes);
    return operations;
  }

 private:
  static std::vector<std::int64_t> above(std::vector<std::int64_t> held, std::int64_t budget) {
    for (std::int64_t& bytes : held) bytes -= budget;
    return held;
  }

  std::uint32_t operations_;
  RangeLoad starts_;
  RangeLoad above_;  ///< bytes above the budget, per operation
};

}  // namespace

void SwapTiming::write_decisions() {
  LateLeaving late(gap_starts_, held_, static_cast<std::int64_t>(ledger_.planning.budget));
  for (std::uint32_t a = 0; a < swaps_.size(); ++a) {
    Absence& absence = ledger_.absences[a];
    const std::uint32_t shift = swaps_[a].first - absence.first;
    absence.stays = away_[a] == 0;
    absence.leaves = swaps_[a].leaves - shift;
    absence.returns = swaps_[a].returns - shift;
    absence.queued = absence.returns;
    absence.gone = absence.leaves;
    if (away_[a] != 0 && !absence.is_arrival) {
      const Swap& swap = swaps_[a];
      absence.gone += late.operations_of(swap.leaves, swap.left, swap.end - swap.leaves, swap.bytes);
    }
  }
  for (std::uint32_t v = 0; v < values_.size(); ++v) ledger_.versions[v].copied = values_[v].copied;
  if (has_stores()) {
    for (std::uint32_t a = 0; a < swaps_.size(); ++a) ledger_.absences[a].store = store_of(a);
    for (std::uint32_t v = 0; v < values_.size(); ++v) ledger_.versions[v].store = store_of_value(v);
  }
  std::uint32_t rank = 0;
  for (const std::uint32_t i : by_start_) ledger_.versions[copies_out_[i].value].rank = ++rank;
}

}  // namespace swapmm::planning
