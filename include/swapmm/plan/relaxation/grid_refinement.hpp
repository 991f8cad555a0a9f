// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <swapmm/plan/bound.hpp>
#include <swapmm/plan/relaxation/coarse_program.hpp>
#include <swapmm/plan/relaxation/solver/interior_point.hpp>
#include <swapmm/plan/relaxation/swap_grid.hpp>
#include <swapmm/plan/relaxation/swap_model.hpp>

namespace swapmm::planning::relaxation {

/// A grid, its program, and the program's solution.
struct SolvedGrid {
  ProgramUnits units;
  GridCuts cuts;
  SwapGrid grid;
  GridProgram program;
  ProgramSolution solution;
};

/// Per window that belongs to a block: the part of it that is off the device at some row, 0 to 1.
struct PartsAway {
  std::vector<double> clean;
  std::vector<double> dirty;
};
[[nodiscard]] PartsAway parts_away(const SwapModel& model, const SolvedGrid& solved);

/// Returns the cuts of a finer grid, including the present ones. It cuts where prices change, around operations whose
/// room has a price or is overrun inside a group, where copies are due or begin inside a group, and through groups
/// whose links are full. `effort` limits this.
[[nodiscard]] GridCuts refine(const SwapModel& model, const SolvedGrid& solved, const BoundEffort& effort);

}  // namespace swapmm::planning::relaxation
