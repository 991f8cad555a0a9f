// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <swapmm/base/export.hpp>
#include <swapmm/base/ids.hpp>
#include <swapmm/base/result.hpp>
#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/bound.hpp>
#include <swapmm/plan/machine.hpp>
#include <swapmm/plan/plan.hpp>
#include <swapmm/plan/planner.hpp>
#include <swapmm/plan/planner_options.hpp>

/// @file
/// Plans that compute values again instead of copying them. See docs/planning.md, "Recomputation".

namespace swapmm {

/// An operation that runs again, for the values that it makes. It is replayable, updates nothing, and writes transients
/// alone, which the host does not read. No operation between it and `before` changes what it reads or writes.
struct Replay {
  OperationId operation{};  ///< which one
  OperationId before{};     ///< it runs again right before this operation, later in the same iteration

  friend bool operator==(const Replay&, const Replay&) = default;
};

/// A program with its replays written out as operations. In between, the values that they make are dead, so a plan for
/// it need not keep them.
struct ReplayedTrace {
  Trace trace;                      ///< of version 1, if the original is so but for replayable operations
  std::vector<std::uint32_t> runs;  ///< per operation: the original's operation that it is, or that it repeats
  std::vector<bool> is_replay;      ///< per operation: whether it repeats one
};

/// Writes replays out. Those before the same operation run in the order of the operations that they repeat; the same
/// one twice counts once. A Problem if a replay is not possible, or if values linger in the trace. Takes
/// (operations + replays) x log(replays).
[[nodiscard]] SWAPMM_EXPORT Result<ReplayedTrace> with_replays(const Trace& trace, std::span<const Replay> replays);

/// A plan with replays.
struct RecomputingPlan {
  std::vector<Replay> replays;  ///< none: values are only copied
  Plan plan;                    ///< for with_replays(trace, replays)
};

/// Parameters of plans with replays. Efforts are counted in steps, not in time.
struct RecomputeOptions {
  int prices = 16;             ///< prices of a copied byte for which replays are chosen. Below 2: no replays
  int refinements = 10;        ///< further prices, between the best ones
  double highest_price = 100;  ///< times the time per byte of the dearest operation
  int omissions = 60;          ///< tries to leave replays of the best choice out
  /// Effort for rating one choice of replays.
  BoundEffort rating{.groups = 16, .options = 20'000, .rounds = 2, .exact_operations = 0};
  int plans = 2;              ///< choices for which `best` runs, in turns; no replays are one of them
  double most_behind = 0.01;  ///< a choice whose plan is slower than the best one by more than this part is given up
  BestOptions best{};         ///< for these runs
};

/// Chooses for each value whether it stays, is copied, or is computed again, chains included. Replays are chosen for
/// many prices of a copied byte, none among them. Each choice is rated by its relaxed problem, the best ones by plans
/// of `best` for the program with the replays written out. `trace` may have replayable operations; all else must be of
/// version 1. The plan's lower bound holds for all plans with copies and replays.
[[nodiscard]] SWAPMM_EXPORT Result<RecomputingPlan> plan_with_replays(const Trace& trace, const Machine& machine,
                                                                      const PlanningOptions& limits = {},
                                                                      const RecomputeOptions& options = {});

}  // namespace swapmm
