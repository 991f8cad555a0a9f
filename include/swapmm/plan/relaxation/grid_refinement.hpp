// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include <swapmm/plan/relaxation/coarse_program.hpp>
#include <swapmm/plan/relaxation/solver/interior_point.hpp>
#include <swapmm/plan/relaxation/swap_grid.hpp>
#include <swapmm/plan/relaxation/swap_model.hpp>

namespace swapmm::planning::relaxation {

/// A grid, its program, and what solves that.
struct SolvedGrid {
  ProgramUnits units;
  GridCuts cuts;
  SwapGrid grid;
  GridProgram program;
  ProgramSolution solution;
};

/// Per member of a block, by its window, the part of it that is off the device somewhere: 0 to 1.
struct PartsAway {
  std::vector<double> clean;
  std::vector<double> dirty;
};
[[nodiscard]] PartsAway parts_away(const SwapModel& model, const SolvedGrid& solved);

struct RefinementLimits {
  std::size_t overruns = 3;     ///< groups cut where their copies have less time than the group, those worst first
  std::size_t full_groups = 2;  ///< halved of those whose links are full, longest first
};

/// Cuts, those there are included, where a finer grid would tell more: where prices change, around operations whose
/// room has a price or is overrun inside a group, where copies are due or begin inside a group, and through groups
/// whose links are full.
[[nodiscard]] GridCuts refine(const SwapModel& model, const SolvedGrid& solved, const RefinementLimits& limits = {});

}  // namespace swapmm::planning::relaxation
