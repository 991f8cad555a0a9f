// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace swapmm::planning::relaxation {

/// A block of copies that are split among options. Each option has a group `out` in which they go to the host, and a
/// group `in` in which they come back, with `out` not after `in`. Over the rows between the two their room is free,
/// including the rows of both groups if possible. Group numbers continue beyond the iteration's end.
struct OptionBlock {
  static constexpr int none = -1;  ///< as `out`: the host has the value; as `in`: it stays

  double amount = 0;            ///< time of the copies in; of those out if none returns
  double room = 0;              ///< room that they free per unit of the amount
  double read = 1;              ///< time of the copies in per unit of the amount; 0: none returns
  double write = 0;             ///< time of the copies out per unit of the amount
  bool is_clean = false;        ///< no copy out
  bool may_stay = false;        ///< "nothing" is an option
  bool may_only_write = false;  ///< a copy out alone is an option
  bool may_run_again = false;   ///< to be away over all rows, and computed again in the group last_in, is an option
  double again = 0;             ///< that time, per unit of the amount
  int first_out = 0, last_out = 0;
  int first_row = 1, last_row = 0;
  int first_in = 1, last_in = 0;
  std::size_t first_option = 0;  ///< in the list of all blocks' options
  std::size_t options = 0;
};

/// The linear program over groups of parts. It finds the options of the blocks that minimize the stalls.
///
///     minimise   sum of stall, and of what is computed again
///     room:      sum of room freed over row g       >= excess of g     if that is above 0
///     in:        copies in in g                     <= duration + stall of g + what is computed again in g
///     out:       copies out in g                    <= the same
///     block:     its options                         = amount
///
/// With half duplex, `in` counts both directions and there is no `out`.
struct CoarseProgram {
  bool half_duplex = false;
  std::vector<double> duration;  ///< per group
  std::vector<double> excess;    ///< per group, in units of OptionBlock::room x amount
  /// For each group whether its row is at its start. If so, no copy out of this group is in time for it.
  std::vector<bool> starts_with_row;
  std::vector<OptionBlock> blocks;
  std::size_t options = 0;

  [[nodiscard]] int groups() const { return static_cast<int>(duration.size()); }
  /// The first row that a copy out frees.
  [[nodiscard]] int first_freed(int out) const {
    int group = out;
    while (group >= groups()) group -= groups();  // at most twice, and faster than a division
    return out + (starts_with_row[static_cast<std::size_t>(group)] ? 1 : 0);
  }
};

/// Whether such an option is to compute again.
[[nodiscard]] inline bool runs_again(int out, int in, int first_row, int last_row) {
  return out < 0 && in < 0 && first_row <= last_row;
}

/// Calls visit(option, out, in, first_row, last_row) for each option of the block, in the order of the list. There are
/// no rows if first_row is above last_row.
template <class Visit>
void for_each_option(const CoarseProgram& program, const OptionBlock& block, Visit&& visit) {
  std::size_t option = block.first_option;
  if (block.may_stay) visit(option++, OptionBlock::none, OptionBlock::none, 1, 0);
  if (block.may_run_again) visit(option++, OptionBlock::none, OptionBlock::none, block.first_row, block.last_row);
  if (block.is_clean) {
    for (int in = block.first_in; in <= block.last_in; ++in) {
      visit(option++, OptionBlock::none, in, block.first_row, std::min(in, block.last_row));
    }
    return;
  }
  for (int out = block.first_out; out <= block.last_out; ++out) {
    if (block.may_only_write) visit(option++, out, OptionBlock::none, 1, 0);
    const int freed = program.first_freed(out);
    const int first_row = std::max(block.first_row, freed);
    for (int in = std::max(block.first_in, freed); in <= block.last_in; ++in) {
      visit(option++, out, in, first_row, std::min(in, block.last_row));
    }
  }
}

[[nodiscard]] inline std::size_t count_options(const CoarseProgram& program, const OptionBlock& block) {
  std::size_t count = (block.may_stay ? 1U : 0U) + (block.may_run_again ? 1U : 0U);
  const int ins = block.last_in - block.first_in + 1;
  if (block.is_clean) return count + static_cast<std::size_t>(std::max(0, ins));
  for (int out = block.first_out; out <= block.last_out; ++out) {
    const int first = std::max(block.first_in, program.first_freed(out));
    count += (block.may_only_write ? 1 : 0) + static_cast<std::size_t>(std::max(0, block.last_in - first + 1));
  }
  return count;
}

/// Adds a block. Its options are numbered after the existing ones.
inline void add_block(CoarseProgram& program, OptionBlock block) {
  block.first_option = program.options;
  block.options = count_options(program, block);
  program.options += block.options;
  program.blocks.push_back(block);
}

}  // namespace swapmm::planning::relaxation
