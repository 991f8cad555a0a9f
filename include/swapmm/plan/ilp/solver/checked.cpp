// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/ilp/solver/checked.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

namespace swapmm::planning::ilp {
namespace {

/// In the programs' units, counts are about 1 and the iteration is 1000, so this is 1/50,000 of it. Cbc takes what it
/// removed before the search out of its solutions again, and bounds are broken by up to 1e-3 then.
constexpr double tolerance = 0.02;

bool is_within(double value, double lower, double upper, double scale) {
  const double slack = tolerance + 1e-6 * scale;
  return value >= lower - slack && value <= upper + slack;
}

bool columns_hold(const Program& program, const std::vector<double>& values, bool has_integers) {
  for (std::size_t c = 0; c < program.columns.size(); ++c) {
    const Program::Column& column = program.columns[c];
    const double value = values[c];
    if (!std::isfinite(value) || !is_within(value, column.lower, column.upper, std::abs(value))) return false;
    if (has_integers && column.is_integer && std::abs(value - std::round(value)) > tolerance) return false;
  }
  return true;
}

bool rows_hold(const Program& program, const std::vector<double>& values) {
  return std::all_of(program.rows.begin(), program.rows.end(), [&](const Program::Row& row) {
    double sum = 0;
    double largest = 0;
    for (const Term& term : row.terms) {
      const double part = term.factor * values[static_cast<std::size_t>(term.column)];
      sum += part;
      largest = std::max({largest, std::abs(part), std::abs(term.factor)});
    }
    return is_within(sum, row.lower, row.upper, largest);
  });
}

}  // namespace

Solution checked(const Program& program, Solution answer, bool has_integers) {
  if (answer.outcome == Outcome::failed) return answer;
  if (answer.outcome == Outcome::none_below) return failed("it found the program infeasible, which it is not");
  if (std::isnan(answer.bound)) return failed("its bound is no number");
  if (answer.values.empty()) {
    if (answer.outcome == Outcome::stopped) return answer;
    return failed("it found an optimum without values");
  }
  if (answer.values.size() != program.columns.size() || !columns_hold(program, answer.values, has_integers) ||
      !rows_hold(program, answer.values)) {
    return failed("its solution breaks the program's rows");
  }
  return answer;
}

}  // namespace swapmm::planning::ilp
