// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string_view>

#include <swapmm/plan/excess_overlap/overlap_stays.hpp>
#include <swapmm/plan/problem/overlap_ledger.hpp>
#include <swapmm/plan/schedule/best_plan.hpp>

namespace swapmm::planning {

/// A local search behind the heuristic: one tensor that stayed goes out, whoever fits then stays instead, and what is
/// not worse is kept. It finds the trades that no fixed order of staying sees, and those that packing asks for: a plan
/// that returns each tensor to its place needs more than free bytes. The number of tries falls with the size of the
/// case, so that it takes tenths of a second; the same case always gives the same plan, if `goes_on` says so.
void trade_stays(OverlapLedger& ledger, std::string_view planner, const OverlapDecision& start, BestPlan& best,
                 const std::function<bool()>& goes_on, const TradeOptions& options = {},
                 const HidingOptions& hiding = {});

}  // namespace swapmm::planning
