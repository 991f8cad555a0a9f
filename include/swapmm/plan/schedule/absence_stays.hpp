// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include <swapmm/plan/problem/overlap_ledger.hpp>
#include <swapmm/plan/schedule/schedule.hpp>

namespace swapmm::planning {

/// The stays that follow from the decisions on absences in the ledger: one from each arrival to the next leaving.
[[nodiscard]] std::vector<Stay> stays_of(const OverlapLedger& ledger);
/// Those of one tensor.
[[nodiscard]] std::vector<Stay> stays_of(const OverlapLedger& ledger, TensorId tensor);

/// Changes decisions so that no operation holds more than `bytes`, which the largest bundle fits into. Where one
/// would, tensors outside its bundle are not there for it, those used furthest ahead first, and of those used at the
/// same operation clean before dirty (Belady's choice): who stayed leaves right before that operation and returns for
/// its next use, who had returned early returns one operation later, and who was to leave later leaves now. Room is
/// only ever given, so one round is enough. (operations + absences) x log(absences), and as much as absences are long.
void let_go_until_it_fits(OverlapLedger& ledger, std::uint64_t bytes);

}  // namespace swapmm::planning
