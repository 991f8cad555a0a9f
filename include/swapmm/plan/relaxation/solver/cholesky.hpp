// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

namespace swapmm::planning::relaxation {

/// A dense symmetric positive semidefinite matrix. Only the lower triangle is stored.
struct SymmetricMatrix {
  explicit SymmetricMatrix(std::size_t size_) : size(size_), values(size_ * size_, 0.0) {}

  [[nodiscard]] double* row(std::size_t i) { return values.data() + i * size; }
  [[nodiscard]] const double* row(std::size_t i) const { return values.data() + i * size; }
  /// Adds to the entry (i, j) and, by symmetry, to (j, i); to the diagonal once.
  void add(std::size_t i, std::size_t j, double value) { (i >= j ? row(i)[j] : row(j)[i]) += value; }
  /// Adds value x (e_i e_j' + e_j e_i'): to the diagonal twice.
  void add_pair(std::size_t i, std::size_t j, double value) { add(i, j, i == j ? 2 * value : value); }

  std::size_t size = 0;
  std::vector<double> values;  ///< row by row
};

/// Overwrites the matrix with its Cholesky factor. Directions without curvature are left out; their unknowns become 0.
/// Takes size^3 / 3 multiplications.
void factorize(SymmetricMatrix& matrix);

/// Solves with a factor, in place.
void solve_with_factor(const SymmetricMatrix& factor, std::vector<double>& vector);

}  // namespace swapmm::planning::relaxation
