// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include <swapmm/plan/relaxation/coarse_program.hpp>
#include <swapmm/plan/relaxation/solver/interior_point.hpp>
#include <swapmm/plan/relaxation/swap_grid.hpp>
#include <swapmm/plan/relaxation/swap_model.hpp>

namespace swapmm::planning::relaxation {

/// A grid, its program, and the solution.
struct SolvedGrid {
  ProgramUnits units;
  GridCuts cuts;
  SwapGrid grid;
  GridProgram program;
  ProgramSolution solution;
};

/// For each window in a block, the part of it that is off the device: 0 to 1.
struct PartsAway {
  std::vector<double> clean;
  std::vector<double> dirty;
};
[[nodiscard]] PartsAway parts_away(const SwapModel& model, const SolvedGrid& solved);

struct RefinementLimits {
  std::size_t overruns = 3;  ///< number of groups cut because their copies have less time than the group; worst first
  std::size_t full_groups = 2;  ///< number of groups with full links that are halved; longest first
};

/// Returns the present cuts and new ones where a finer grid would improve the bound: where prices change, around
/// operations whose room has a price or is exceeded inside a group, where copies are due or begin inside a group, and
/// through groups whose links are full.
[[nodiscard]] GridCuts refine(const SwapModel& model, const SolvedGrid& solved, const RefinementLimits& limits = {});

}  // namespace swapmm::planning::relaxation
