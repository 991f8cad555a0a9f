// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/v2/relaxation/solver/sparse_program.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include <swapmm/plan/relaxation/solver/cholesky.hpp>

namespace swapmm::v2::planning {
namespace {

using swapmm::planning::relaxation::SymmetricMatrix;
using Vector = std::vector<double>;

double dot(const Vector& a, const Vector& b) { return std::inner_product(a.begin(), a.end(), b.begin(), 0.0); }

double largest(const Vector& values) {
  double most = 0;
  for (const double value : values) most = std::max(most, std::abs(value));
  return most;
}

/// A point, or a step from one to the next.
struct Iterate {
  Vector x;
  Vector slack;  ///< cost - A' y - B' v; slack and x are kept above 0
  Vector y;
  Vector v;
};

class InteriorPoint {
 public:
  explicit InteriorPoint(const SparseProgram& program)
      : program_(program), rows_(program.right_side.size()), normal_(rows_) {
    at_.x = program.start;
    at_.y = program.start_prices;
    at_.v.assign(program.amounts.size(), 0.0);
    // A block's price leaves each of its unknowns a slack.
    multiply_transposed(at_.y, at_.v, at_.slack);
    Vector least(program.amounts.size(), std::numeric_limits<double>::infinity());
    for (std::size_t i = 0; i < program.unknowns(); ++i) {
      at_.slack[i] = program.cost[i] - at_.slack[i];
      if (const std::uint32_t b = program.block[i]; b != SparseProgram::no_block) {
        least[b] = std::min(least[b], at_.slack[i]);
      }
    }
    constexpr double least_slack = 0.1;
    for (std::size_t b = 0; b < least.size(); ++b) {
      if (std::isfinite(least[b])) at_.v[b] = least[b] - least_slack;
    }
    for (std::size_t i = 0; i < program.unknowns(); ++i) {
      if (const std::uint32_t b = program.block[i]; b != SparseProgram::no_block) at_.slack[i] -= at_.v[b];
      at_.slack[i] = std::max(at_.slack[i], 1e-3 * least_slack);
    }
    step_ = at_;
  }

  SparseSolution run(double tolerance, int iterations) {
    SparseSolution solution;
    for (int i = 0; i < iterations; ++i) {
      find_residuals();
      if (gap_ < tolerance && largest(row_residual_) < tolerance && largest(block_residual_) < tolerance &&
          largest(slack_residual_) < 1e-4) {
        solution.is_solved = true;
        break;
      }
      if (!advance()) break;
    }
    solution.x = at_.x;
    solution.prices = at_.y;
    return solution;
  }

 private:
  void multiply(const Vector& x, Vector& rows, Vector& sums) const {
    rows.assign(rows_, 0.0);
    sums.assign(program_.amounts.size(), 0.0);
    for (std::size_t i = 0; i < x.size(); ++i) {
      for (std::size_t e = program_.first[i]; e < program_.first[i + 1]; ++e) {
        rows[program_.entries[e].row] += program_.entries[e].value * x[i];
      }
      if (program_.block[i] != SparseProgram::no_block) sums[program_.block[i]] += x[i];
    }
  }
  void multiply_transposed(const Vector& y, const Vector& v, Vector& result) const {
    result.assign(program_.unknowns(), 0.0);
    for (std::size_t i = 0; i < result.size(); ++i) {
      double sum = program_.block[i] != SparseProgram::no_block ? v[program_.block[i]] : 0.0;
      for (std::size_t e = program_.first[i]; e < program_.first[i + 1]; ++e) {
        sum += program_.entries[e].value * y[program_.entries[e].row];
      }
      result[i] = sum;
    }
  }

  void find_residuals() {
    multiply(at_.x, row_residual_, block_residual_);
    for (std::size_t r = 0; r < rows_; ++r) row_residual_[r] = program_.right_side[r] - row_residual_[r];
    for (std::size_t b = 0; b < block_residual_.size(); ++b) {
      block_residual_[b] = program_.amounts[b] - block_residual_[b];
    }
    multiply_transposed(at_.y, at_.v, slack_residual_);
    for (std::size_t i = 0; i < slack_residual_.size(); ++i) {
      slack_residual_[i] = program_.cost[i] - slack_residual_[i] - at_.slack[i];
    }
    gap_ = dot(at_.x, at_.slack);
  }

  /// The normal equations with weights x / slack. B d B' is a diagonal, so blocks are eliminated.
  void set_weights() {
    std::ranges::fill(normal_.values, 0.0);
    sums_.assign(program_.amounts.size(), 0.0);
    couplings_.assign(program_.amounts.size(), {});
    Vector column(rows_, 0.0);
    std::vector<std::uint32_t> touched;
    std::vector<char> is_touched(rows_, 0);
    const auto finish = [&](std::uint32_t b) {
      std::ranges::sort(touched);
      auto& coupling = couplings_[b];
      for (const std::uint32_t r : touched) {
        coupling.push_back({r, column[r]});
        column[r] = 0;
        is_touched[r] = 0;
      }
      touched.clear();
      for (std::size_t i = 0; i < coupling.size(); ++i) {
        const double factor = coupling[i].value / sums_[b];
        double* const row = normal_.row(coupling[i].row);
        for (std::size_t j = 0; j <= i; ++j) row[coupling[j].row] -= factor * coupling[j].value;
      }
    };
    std::uint32_t now = SparseProgram::no_block;
    for (std::size_t i = 0; i < weights_.size(); ++i) {
      const std::uint32_t b = program_.block[i];
      if (b != now) {
        if (now != SparseProgram::no_block) finish(now);
        now = b;
      }
      const double d = weights_[i];
      if (b != SparseProgram::no_block) sums_[b] += d;
      for (std::size_t e = program_.first[i]; e < program_.first[i + 1]; ++e) {
        const SparseProgram::Entry& one = program_.entries[e];
        const double weighted = d * one.value;
        if (b != SparseProgram::no_block) {
          column[one.row] += weighted;
          if (std::exchange(is_touched[one.row], 1) == 0) touched.push_back(one.row);
        }
        for (std::size_t f = program_.first[i]; f <= e; ++f) {
          const SparseProgram::Entry& other = program_.entries[f];
          // Only the lower triangle; an unknown has a row once at most.
          double* const row = normal_.row(std::max(one.row, other.row));
          row[std::min(one.row, other.row)] += weighted * other.value;
        }
      }
    }
    if (now != SparseProgram::no_block) finish(now);
    for (std::size_t r = 0; r < rows_; ++r) normal_.row(r)[r] *= 1 + 1e-13;
    swapmm::planning::relaxation::factorize(normal_);
  }

  /// Overwrites r with y, and q with v.
  void solve(Vector& r, Vector& q) const {
    for (std::size_t b = 0; b < q.size(); ++b) {
      if (sums_[b] <= 0) continue;
      for (const SparseProgram::Entry& entry : couplings_[b]) r[entry.row] -= entry.value * q[b] / sums_[b];
    }
    swapmm::planning::relaxation::solve_with_factor(normal_, r);
    for (std::size_t b = 0; b < q.size(); ++b) {
      for (const SparseProgram::Entry& entry : couplings_[b]) q[b] -= entry.value * r[entry.row];
      if (sums_[b] > 0) q[b] /= sums_[b];
    }
  }

  bool advance() {
    const std::size_t unknowns = at_.x.size();
    weights_.resize(unknowns);
    for (std::size_t i = 0; i < unknowns; ++i) weights_[i] = at_.x[i] / at_.slack[i];
    set_weights();
    find_step(0, false);
    const double predicted = gap_after(longest_step(at_.x, step_.x), longest_step(at_.slack, step_.slack));
    const double centering = std::pow(predicted / gap_, 3);
    find_step(centering * gap_ / static_cast<double>(unknowns), true);
    constexpr double reach = 0.98;
    const double primal = std::min(1.0, reach * longest_step(at_.x, step_.x));
    const double dual = std::min(1.0, reach * longest_step(at_.slack, step_.slack));
    if (!std::isfinite(primal * dot(step_.x, step_.x)) || !std::isfinite(dual * dot(step_.slack, step_.slack))) {
      return false;
    }
    const auto move = [](Vector& values, const Vector& step, double length) {
      for (std::size_t i = 0; i < values.size(); ++i) values[i] += length * step[i];
    };
    move(at_.x, step_.x, primal);
    move(at_.slack, step_.slack, dual);
    move(at_.y, step_.y, dual);
    move(at_.v, step_.v, dual);
    return true;
  }

  void find_step(double target, bool corrects) {
    const std::size_t unknowns = at_.x.size();
    complement_.resize(unknowns);
    shift_.resize(unknowns);
    for (std::size_t i = 0; i < unknowns; ++i) {
      const double correction = corrects ? step_.x[i] * step_.slack[i] : 0.0;
      complement_[i] = target - at_.x[i] * at_.slack[i] - correction;
      shift_[i] = complement_[i] / at_.slack[i] - weights_[i] * slack_residual_[i];
    }
    multiply(shift_, step_.y, step_.v);
    for (std::size_t r = 0; r < rows_; ++r) step_.y[r] = row_residual_[r] - step_.y[r];
    for (std::size_t b = 0; b < step_.v.size(); ++b) step_.v[b] = block_residual_[b] - step_.v[b];
    solve(step_.y, step_.v);
    multiply_transposed(step_.y, step_.v, step_.slack);
    for (std::size_t i = 0; i < unknowns; ++i) {
      step_.slack[i] = slack_residual_[i] - step_.slack[i];
      step_.x[i] = (complement_[i] - at_.x[i] * step_.slack[i]) / at_.slack[i];
    }
  }

  static double longest_step(const Vector& values, const Vector& step) {
    double length = 1;
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (step[i] < 0) length = std::min(length, -values[i] / step[i]);
    }
    return length;
  }
  [[nodiscard]] double gap_after(double primal, double dual) const {
    double gap = 0;
    for (std::size_t i = 0; i < at_.x.size(); ++i) {
      gap += (at_.x[i] + primal * step_.x[i]) * (at_.slack[i] + dual * step_.slack[i]);
    }
    return gap;
  }

  const SparseProgram& program_;
  std::size_t rows_;
  SymmetricMatrix normal_;
  Vector sums_;                                               // per block: its entry of B d B'
  std::vector<std::vector<SparseProgram::Entry>> couplings_;  // per block: its column of A d B'
  Iterate at_;
  Iterate step_;
  Vector weights_;     // x / slack
  Vector complement_;  // the target minus x times slack
  Vector shift_;       // the step if the prices did not change
  Vector row_residual_;
  Vector block_residual_;
  Vector slack_residual_;
  double gap_ = 0;
};

}  // namespace

void subtract_previous(SparseProgram& program, const std::vector<std::uint32_t>& next) {
  constexpr double rounding = 1e-12;
  std::vector<SparseProgram::Entry> entries;
  std::vector<std::size_t> first{0};
  std::vector<double> sums(program.right_side.size(), 0.0);
  std::vector<std::uint32_t> touched;
  const auto add = [&](std::uint32_t row, double value) {
    touched.push_back(row);
    sums[row] += value;
  };
  for (std::size_t i = 0; i < program.unknowns(); ++i) {
    for (std::size_t e = program.first[i]; e < program.first[i + 1]; ++e) {
      const auto [row, value] = program.entries[e];
      add(row, value);
      if (next[row] != SparseProgram::no_row) add(next[row], -value);
    }
    for (const std::uint32_t row : touched) {
      if (const double sum = std::exchange(sums[row], 0.0); std::abs(sum) > rounding) entries.push_back({row, sum});
    }
    touched.clear();
    first.push_back(entries.size());
  }
  program.entries = std::move(entries);
  program.first = std::move(first);
  for (std::size_t r = next.size(); r-- > 0;) {
    if (next[r] == SparseProgram::no_row) continue;
    program.right_side[next[r]] -= program.right_side[r];
    program.start_prices[r] += program.start_prices[next[r]];
  }
}

void add_next(Vector& prices, const std::vector<std::uint32_t>& next) {
  for (std::size_t r = 0; r < next.size(); ++r) {
    if (next[r] != SparseProgram::no_row) prices[r] -= prices[next[r]];
  }
}

SparseSolution solve_program(const SparseProgram& program, double tolerance, int iterations) {
  return InteriorPoint(program).run(tolerance, iterations);
}

}  // namespace swapmm::v2::planning
