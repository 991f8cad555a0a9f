// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/relaxation/solver/cholesky.hpp>

#include <cmath>

namespace swapmm::planning::relaxation {

void factorize(SymmetricMatrix& matrix) {
  const std::size_t n = matrix.size;
  constexpr double no_curvature = 1e-30;
  constexpr double huge = 1e15;
  std::vector<double> column(n);
  for (std::size_t k = 0; k < n; ++k) {
    const double pivot = matrix.row(k)[k];
    const double root = pivot > no_curvature ? std::sqrt(pivot) : huge;
    matrix.row(k)[k] = root;
    for (std::size_t i = k + 1; i < n; ++i) column[i] = matrix.row(i)[k] /= root;
    for (std::size_t i = k + 1; i < n; ++i) {
      const double factor = column[i];
      if (factor == 0) continue;
      double* const row = matrix.row(i);
      for (std::size_t j = k + 1; j <= i; ++j) row[j] -= factor * column[j];
    }
  }
}

void solve_with_factor(const SymmetricMatrix& factor, std::vector<double>& vector) {
  const std::size_t n = factor.size;
  for (std::size_t i = 0; i < n; ++i) {
    double rest = vector[i];
    for (std::size_t j = 0; j < i; ++j) rest -= factor.row(i)[j] * vector[j];
    vector[i] = rest / factor.row(i)[i];
  }
  for (std::size_t i = n; i-- > 0;) {
    vector[i] /= factor.row(i)[i];
    for (std::size_t j = 0; j < i; ++j) vector[j] -= factor.row(i)[j] * vector[i];
  }
}

}  // namespace swapmm::planning::relaxation
