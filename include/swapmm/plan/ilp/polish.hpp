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
  std::uint32_t packing_steps = 0;  ///< PackingEffort::ejection_steps of each try
};

/// Makes small random changes to the ledger's decisions, from a fixed seed: a tensor goes out or stays, or leaves,
/// returns or is written back in another gap. A change is kept if the iteration takes no longer or, while nothing packs
/// yet, if it needs no more room. Each plan that packs is offered to `best`. For tiny traces, if the decisions of an
/// integer program do not pack, or if their places make copies wait. Packs and simulates `effort.tries` times, or until
/// is_done() returns true.
void polish(OverlapLedger& ledger, std::string_view planner, const PolishEffort& effort,
            const std::function<bool()>& is_done, BestPlan& best);

}  // namespace swapmm::planning::ilp
