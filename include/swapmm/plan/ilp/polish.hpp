// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include <swapmm/plan/problem/overlap_ledger.hpp>
#include <swapmm/plan/schedule/best_plan.hpp>

namespace swapmm::planning::ilp {

struct PolishEffort {
  std::uint32_t tries = 0;
  std::uint32_t packing_steps = 0;  ///< PackingEffort::ejection_steps of each
};

/// Small random changes of the ledger's decisions, from a fixed seed: a tensor goes out or stays, leaves, returns or is
/// written back in another gap. What takes no longer, or where nothing packs yet needs no more room, is kept, and
/// offered to `best`. For tiny traces, where what an integer program chose does not pack, or has places that make it
/// wait. Packs and simulates so many times, or until is_done() says so.
void polish(OverlapLedger& ledger, std::string_view planner, const PolishEffort& effort,
            const std::function<bool()>& is_done, BestPlan& best);

}  // namespace swapmm::planning::ilp
