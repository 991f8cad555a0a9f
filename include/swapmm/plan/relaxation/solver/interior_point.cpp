// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/relaxation/solver/interior_point.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

#include <swapmm/plan/relaxation/solver/normal_equations.hpp>
#include <swapmm/plan/relaxation/solver/program_matrix.hpp>

namespace swapmm::planning::relaxation {
namespace {

using Vector = std::vector<double>;

double dot(const Vector& a, const Vector& b) { return std::inner_product(a.begin(), a.end(), b.begin(), 0.0); }

double largest(const Vector& values) {
  double most = 0;
  for (const double value : values) most = std::max(most, std::abs(value));
  return most;
}

/// A point, or a step from one to the next.
struct Iterate {
  Vector x;      ///< unknowns
  Vector slack;  ///< cost - A' y - B' v; slack and x are kept above 0
  Vector y;      ///< prices of rows
  Vector v;      ///< prices of blocks
};

class InteriorPoint {
 public:
  explicit InteriorPoint(const CoarseProgram& program) : program_(program), matrix_(program), equations_(matrix_) {
    for (const OptionBlock& block : program.blocks) amounts_.push_back(block.amount);
    set_start();
  }

  ProgramSolution run(const InteriorPointLimits& limits) {
    ProgramSolution solution;
    double least = std::numeric_limits<double>::infinity();  // error of the best point so far
    for (; solution.iterations < limits.iterations; ++solution.iterations) {
      find_residuals();
      const double error = error_in(limits);
      if (error < least) {
        least = error;
        best_ = at_;
      }
      solution.is_solved = error < 1;
      if (solution.is_solved || !advance()) break;
    }
    // Where rounding errors hold the residuals, further steps lead away again.
    if (best_) at_ = *std::move(best_);
    write(solution);
    return solution;
  }

 private:
  /// Sets a start that is above 0 everywhere, in the order of magnitude of an optimum. It need not fulfil the
  /// equations.
  void set_start() {
    const std::size_t groups = matrix_.groups();
    at_.x.assign(matrix_.unknowns(), 0.1);
    at_.slack.assign(matrix_.unknowns(), 1.0);
    at_.v.assign(program_.blocks.size(), 0.0);
    at_.y.assign(matrix_.rows(), -0.3);
    for (std::size_t room = 0; room < matrix_.rooms(); ++room) {
      at_.y[room] = 0.05;
      at_.slack[matrix_.surplus(room)] = 0.1;
      at_.slack[matrix_.missing(room)] = matrix_.cost(matrix_.missing(room));
      at_.x[matrix_.missing(room)] = 0.1 / at_.slack[matrix_.missing(room)];
    }
    for (std::size_t g = 0; g < groups; ++g) {
      at_.slack[matrix_.stall(g)] = program_.half_duplex ? 0.7 : 0.4;
      at_.slack[matrix_.idle_in(g)] = 0.3;
      if (!program_.half_duplex) at_.slack[matrix_.idle_out(g)] = 0.3;
    }
    for (const OptionBlock& block : program_.blocks) {
      const double share = block.amount / static_cast<double>(block.options);
      std::fill_n(at_.x.begin() + static_cast<std::ptrdiff_t>(block.first_option), block.options, share);
    }
    step_ = at_;
  }

  void find_residuals() {
    matrix_.multiply(at_.x, row_residual_, block_residual_);
    for (std::size_t i = 0; i < row_residual_.size(); ++i)
      row_residual_[i] = matrix_.right_side()[i] - row_residual_[i];
    for (std::size_t b = 0; b < amounts_.size(); ++b) block_residual_[b] = amounts_[b] - block_residual_[b];
    matrix_.multiply_transposed(at_.y, at_.v, slack_residual_);
    for (std::size_t i = 0; i < slack_residual_.size(); ++i) {
      slack_residual_[i] = matrix_.cost(i) - slack_residual_[i] - at_.slack[i];
    }
    gap_ = dot(at_.x, at_.slack);
  }

  /// How far the point is from what is asked for; below 1, it is there.
  [[nodiscard]] double error_in(const InteriorPointLimits& limits) const {
    constexpr double slack_tolerance = 1e-4;
    const double residual = std::max(largest(row_residual_), largest(block_residual_));
    return std::max(
        {gap_ / limits.tolerance, 10 * residual / limits.tolerance, largest(slack_residual_) / slack_tolerance});
  }

  /// Does one iteration. If numbers are out of range, returns false and leaves the point unchanged.
  bool advance() {
    const std::size_t unknowns = at_.x.size();
    weights_.resize(unknowns);
    for (std::size_t i = 0; i < unknowns; ++i) weights_[i] = at_.x[i] / at_.slack[i];
    equations_.set_weights(weights_);

    find_step(0, false);
    const double gap_of_prediction = gap_after(longest_step(at_.x, step_.x), longest_step(at_.slack, step_.slack));
    const double centering = std::pow(gap_of_prediction / gap_, 3);
    find_step(centering * gap_ / static_cast<double>(unknowns), true);
    const double reach = 0.98;
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

  /// Finds Newton's step towards x slack = `target`, with the second-order term of the step before if `corrects`.
  void find_step(double target, bool corrects) {
    const std::size_t unknowns = at_.x.size();
    complement_.resize(unknowns);
    shift_.resize(unknowns);
    for (std::size_t i = 0; i < unknowns; ++i) {
      const double correction = corrects ? step_.x[i] * step_.slack[i] : 0.0;
      complement_[i] = target - at_.x[i] * at_.slack[i] - correction;
      shift_[i] = complement_[i] / at_.slack[i] - weights_[i] * slack_residual_[i];
    }
    matrix_.multiply(shift_, step_.y, step_.v);
    for (std::size_t i = 0; i < step_.y.size(); ++i) step_.y[i] = row_residual_[i] - step_.y[i];
    for (std::size_t b = 0; b < step_.v.size(); ++b) step_.v[b] = block_residual_[b] - step_.v[b];
    equations_.solve(step_.y, step_.v);
    matrix_.multiply_transposed(step_.y, step_.v, step_.slack);
    for (std::size_t i = 0; i < unknowns; ++i) {
      step_.slack[i] = slack_residual_[i] - step_.slack[i];
      step_.x[i] = (complement_[i] - at_.x[i] * step_.slack[i]) / at_.slack[i];
    }
  }

  /// The largest length, at most 1, at which no value falls below 0.
  static double longest_step(const Vector& values, const Vector& step) {
    double length = 1;
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (step[i] < 0) length = std::min(length, -values[i] / step[i]);
    }
    return length;
  }

  double gap_after(double primal, double dual) const {
    double gap = 0;
    for (std::size_t i = 0; i < at_.x.size(); ++i) {
      gap += (at_.x[i] + primal * step_.x[i]) * (at_.slack[i] + dual * step_.slack[i]);
    }
    return gap;
  }

  void write(ProgramSolution& solution) const {
    for (std::size_t g = 0; g < matrix_.groups(); ++g) {
      const int group = static_cast<int>(g);
      const int room = matrix_.room_row(group);
      solution.room.push_back(room >= 0 ? std::max(0.0, at_.y[static_cast<std::size_t>(room)]) : 0.0);
      solution.in.push_back(std::max(0.0, -at_.y[matrix_.in_row(group)]));
      solution.out.push_back(std::max(0.0, -at_.y[matrix_.out_row(group)]));
      solution.stall.push_back(at_.x[matrix_.stall(g)]);
      solution.objective += solution.stall.back();
    }
    for (std::size_t option = 0; option < program_.options; ++option) {
      solution.objective += matrix_.cost(option) * at_.x[option];
    }
    solution.options.assign(at_.x.begin(), at_.x.begin() + static_cast<std::ptrdiff_t>(program_.options));
  }

  const CoarseProgram& program_;
  ProgramMatrix matrix_;
  NormalEquations equations_;
  Vector amounts_;  ///< per block
  Iterate at_;
  Iterate step_;
  std::optional<Iterate> best_;  ///< the point with the least error
  Vector weights_;               ///< x / slack
  Vector complement_;            ///< the target minus x times slack
  Vector shift_;                 ///< the step if the prices did not change
  Vector row_residual_;
  Vector block_residual_;
  Vector slack_residual_;
  double gap_ = 0;
};

}  // namespace

ProgramSolution solve_program(const CoarseProgram& program, const InteriorPointLimits& limits) {
  return InteriorPoint(program).run(limits);
}

}  // namespace swapmm::planning::relaxation
