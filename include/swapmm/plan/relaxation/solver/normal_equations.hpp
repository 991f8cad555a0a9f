// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include <swapmm/plan/relaxation/solver/cholesky.hpp>
#include <swapmm/plan/relaxation/solver/program_matrix.hpp>

namespace swapmm::planning::relaxation {

/// The normal equations of a ProgramMatrix with a weight d above 0 for each unknown:
///
///     A d A' y + A d B' v = r
///     B d A' y + B d B' v = q
///
/// B d B' is a diagonal, so v is eliminated block by block and y is left, with about three rows for each group.
class NormalEquations {
 public:
  explicit NormalEquations(const ProgramMatrix& matrix) : matrix_(matrix), left_(matrix.rows()) {}

  /// Takes about the number of options, and for each block the square of the rows that it touches.
  void set_weights(const std::vector<double>& d);
  /// Overwrites r with y, and q with v.
  void solve(std::vector<double>& r, std::vector<double>& q) const;

 private:
  using Entry = std::pair<std::size_t, double>;  ///< row, value

  double gather(const OptionBlock& block, const std::vector<double>& d);
  void add_rooms(const OptionBlock& block, std::vector<Entry>& coupling);
  void add_room(const OptionBlock& block, std::size_t row, std::vector<Entry>& coupling);
  void add_copies(const OptionBlock& block, std::vector<Entry>& coupling);
  void add_time_again(const OptionBlock& block, std::vector<Entry>& coupling);
  void add_out(const OptionBlock& block, std::size_t out);
  void eliminate(std::vector<Entry>& coupling, double sum);

  const ProgramMatrix& matrix_;
  SymmetricMatrix left_;
  std::vector<double> sums_;                   ///< per block: its entry of B d B'
  std::vector<std::vector<Entry>> couplings_;  ///< per block: its column of A d B'
  // Weights of the current block:
  std::size_t outs_ = 0;
  std::size_t ins_ = 0;
  std::size_t rows_ = 0;
  double again_weight_ = 0;         ///< of the option without a copy, if there is one
  std::vector<double> weight_;      ///< per out and in
  std::vector<double> in_sum_;      ///< per in
  std::vector<double> out_sum_;     ///< per out
  std::vector<double> freed_;       ///< per in: the weights of options whose room is free at the current row
  std::vector<double> freed_from_;  ///< per row and in: the sum of these from that in on
};

}  // namespace swapmm::planning::relaxation
