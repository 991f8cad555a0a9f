// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace swapmm::v2::planning {

/// A linear program whose unknowns are split among blocks:
///
///     minimise cost x   with   A x = right side,   the unknowns of each block add up to its amount,   x >= 0
///
/// Each unknown has a few entries in A.
struct SparseProgram {
  static constexpr std::uint32_t no_block = 0xffffffff;
  static constexpr std::uint32_t no_row = 0xffffffff;

  struct Entry {
    std::uint32_t row = 0;
    double value = 0;

    friend bool operator==(const Entry&, const Entry&) = default;
  };

  std::vector<double> right_side;     ///< per row
  std::vector<double> amounts;        ///< per block
  std::vector<Entry> entries;         ///< of all unknowns, one after another
  std::vector<std::size_t> first{0};  ///< per unknown, and one more: its first entry
  std::vector<double> cost;           ///< per unknown
  std::vector<std::uint32_t> block;   ///< per unknown; ascending for those that have one, which come first
  std::vector<double> start;          ///< per unknown, above 0: where to begin
  std::vector<double> start_prices;   ///< per row: the prices to begin with

  [[nodiscard]] std::size_t unknowns() const { return cost.size(); }
  /// Ends the unknown whose entries were added to `entries`.
  void add_unknown(double cost_, std::uint32_t block_) {
    first.push_back(entries.size());
    cost.push_back(cost_);
    block.push_back(block_);
  }
};

/// Replaces rows by their differences from the rows before them: row next[r] becomes what it was, less what row r was.
/// `next` has a later row for each row, or no_row. The program stays the same.
void subtract_previous(SparseProgram& program, const std::vector<std::uint32_t>& next);
/// Turns prices of the differences into prices of the rows as they were.
void add_next(std::vector<double>& prices, const std::vector<std::uint32_t>& next);

struct SparseSolution {
  std::vector<double> x;       ///< per unknown
  std::vector<double> prices;  ///< per row
  bool is_solved = false;      ///< to the tolerance
};

/// Mehrotra's predictor-corrector method, as in plan/relaxation/solver/interior_point.hpp, for programs of any form.
/// Prices are approximately those of an optimum, without a guarantee. Each iteration takes, for each unknown, the
/// square of its entries, for each block the square of the rows that it touches, and rows^3 / 3.
[[nodiscard]] SparseSolution solve_program(const SparseProgram& program, double tolerance, int iterations);

}  // namespace swapmm::v2::planning
