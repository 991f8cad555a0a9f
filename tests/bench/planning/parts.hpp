// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "measuring.hpp"
#include "table.hpp"

// The parts of the benchmark, each a subcommand. docs/planning.md says what they are for.

namespace swapmm::bench {

/// Traces x budgets x bandwidths x speeds of computation: iteration time over the bound.
[[nodiscard]] Report run_grid(const Settings& settings);
/// The five workloads that G10 published: fraction of ideal beside theirs.
[[nodiscard]] Report run_published(const Settings& settings);
/// Synthetic traces of 1,000 to 100,000 operations: time to the first plan.
[[nodiscard]] Report run_scale(const Settings& settings);
/// Plans under other times than they were made for, against plans that knew.
[[nodiscard]] Report run_robust(const Settings& settings);
/// Small training steps: `best`, and the integer program with its proof.
[[nodiscard]] Report run_steps(const Settings& settings);
/// What each technique of `best` contributes: without it, and with all.
[[nodiscard]] Report run_techniques(const Settings& settings);
/// Spare memory of one or three neighbours before the host, over budgets and speeds of links.
[[nodiscard]] Report run_harvest(const Settings& settings);
/// Two to eight devices behind one link: one plan for all, against plans for each of them.
[[nodiscard]] Report run_devices(const Settings& settings);
/// The same on managers: simulated devices on one clock, with plans of their own, and with one plan for all.
[[nodiscard]] Report run_managers(const Settings& settings);
/// Instances with a near memory and a disk: time over the bound.
[[nodiscard]] Report run_memories(const Settings& settings);
[[nodiscard]] Report run_behind(const Settings& settings);
/// Instances whose engines share memories or tensors: time over the bound.
[[nodiscard]] Report run_engines(const Settings& settings);
/// Traces x budgets x bandwidths: copies alone, operations that run again alone, both, and all ways.
[[nodiscard]] Report run_ways(const Settings& settings);
/// Traces x budgets: whole tensors, and tensors that may be divided.
[[nodiscard]] Report run_pieces(const Settings& settings);
/// Every planner and the bound over the budget.
[[nodiscard]] Report run_curve(const Settings& settings);

}  // namespace swapmm::bench
