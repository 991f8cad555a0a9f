// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include <swapmm/plan/problem/overlap_ledger.hpp>
#include <swapmm/plan/schedule/schedule.hpp>

namespace swapmm::planning {

/// The stays that follow from the decisions on absences in the ledger: one from each arrival to the next departure.
[[nodiscard]] std::vector<Stay> stays_of(const OverlapLedger& ledger);
/// The same for one tensor.
[[nodiscard]] std::vector<Stay> stays_of(const OverlapLedger& ledger, TensorId tensor);

/// Change the decision on an absence over which the tensor is away: it returns right before its next use, or leaves
/// right after its last one. Less room is taken, and less is overlapped. Return whether that is a change.
bool return_late(Absence& absence);
bool leave_early(Absence& absence);

/// Changes decisions so that no operation holds more than `bytes`, which must be enough for the largest bundle. If an
/// operation holds more, tensors outside its bundle are removed: those used furthest ahead first, and among those used
/// at the same operation clean ones before dirty ones (Belady's choice). A tensor that stayed leaves right before the
/// operation and returns for its next use. A tensor that had returned early returns one operation later. A tensor that
/// would leave later leaves now. Changes only free room, so one round is enough. Takes (operations + absences) x
/// log(absences), plus the sum of the lengths of the absences.
void let_go_until_it_fits(OverlapLedger& ledger, std::uint64_t bytes);

}  // namespace swapmm::planning
