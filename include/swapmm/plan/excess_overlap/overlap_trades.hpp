// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string_view>

#include <swapmm/plan/excess_overlap/overlap_stays.hpp>
#include <swapmm/plan/problem/overlap_ledger.hpp>
#include <swapmm/plan/schedule/best_plan.hpp>

namespace swapmm::planning {

/// Runs a local search after the heuristic. A tensor that stayed goes out, others that then fit stay instead, and the
/// result is kept if it is not worse. The search finds trades that no fixed order of stays finds, and trades that
/// packing needs: a tensor returns to a place, which takes more than free bytes. The number of tries falls with the
/// size of the case, so the search takes tenths of a second. The same case always gives the same plan if `keep_going`
/// gives the same answers.
void trade_stays(OverlapLedger& ledger, std::string_view planner, const OverlapDecision& start, BestPlan& best,
                 const std::function<bool()>& keep_going, const TradeOptions& options = {},
                 const HidingOptions& hiding = {});

}  // namespace swapmm::planning
