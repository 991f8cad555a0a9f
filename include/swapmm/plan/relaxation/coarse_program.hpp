// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <swapmm/plan/relaxation/solver/option_blocks.hpp>
#include <swapmm/plan/relaxation/swap_grid.hpp>
#include <swapmm/plan/relaxation/swap_model.hpp>

namespace swapmm::planning::relaxation {

/// Says which window of each value pays for the copy to the host. One window pays. The program treats the other windows
/// either as clean or as paying again; the prices decide which.
struct PayingWindows {
  std::vector<std::uint32_t> main;    ///< per value, counted from its first window
  std::vector<bool> others_are_free;  ///< per value; empty: none are
};

/// Chooses the window that is away over the most excess.
[[nodiscard]] PayingWindows first_paying_windows(const SwapModel& model);

/// A window in a block.
struct BlockMember {
  bool is_clean = false;
  std::uint32_t window = 0;  ///< in SwapModel::clean or ::dirty
};

/// The units of a program.
struct ProgramUnits {
  double time = 1;      ///< nanoseconds
  double per_byte = 1;  ///< nanoseconds that a byte of room counts as
};
[[nodiscard]] ProgramUnits find_units(const SwapModel& model);

/// The model on a grid: windows with the same groups form one block. It is a relaxation, except for values with several
/// windows.
struct GridProgram {
  CoarseProgram program;
  std::vector<std::vector<BlockMember>> members;  ///< per block
};

/// Makes the program. Takes about windows x log blocks.
[[nodiscard]] GridProgram make_grid_program(const SwapModel& model, const SwapGrid& grid, const ProgramUnits& units,
                                            const PayingWindows& paying);

}  // namespace swapmm::planning::relaxation
