// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include <swapmm/plan/bound.hpp>
#include <swapmm/plan/problem/overlap_ledger.hpp>
#include <swapmm/plan/problem/planning_case.hpp>

namespace swapmm::planning {

/// A time in nanoseconds such that no iteration is shorter if values may also be made again. `again`: per absence of
/// the ledger, the nanoseconds of computation that this takes at least at its end; infinity where nothing makes the
/// value. A value that lingers is lost for nothing if it is made again later: that is 0.
///
/// It is the Lagrangian of relax_swaps() with one more choice for each absence, and so is the linear program that its
/// prices are from. What making a value again needs is taken for free. Each copy may take less than the machine says by
/// `saved_by_copy`. Takes as long as relax_swaps().
[[nodiscard]] double bound_with_replays(const PlanningCase& planning, const OverlapLedger& ledger,
                                        std::span<const double> again, double saved_by_copy, const BoundEffort& effort);

}  // namespace swapmm::planning
