// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

namespace swapmm::planning::ilp {

inline constexpr double infinity = std::numeric_limits<double>::max();

/// One summand of a row.
struct Term {
  int column = 0;
  double factor = 0;
};

/// Minimise the sum of cost x column, subject to the bounds of columns and rows.
class Program {
 public:
  struct Column {
    double lower = 0;
    double upper = infinity;
    double cost = 0;
    bool is_integer = false;
  };
  struct Row {
    double lower = -infinity;
    double upper = infinity;
    std::vector<Term> terms;  ///< a column may stand in it several times
  };

  /// Both give the position of the new one.
  int add_column(const Column& column);
  int add_binary(double cost = 0) { return add_column({0, 1, cost, true}); }
  int add_row(Row row);
  /// The sum of the terms is at least, or at most, that.
  int at_least(double bound, std::vector<Term> terms) { return add_row({bound, infinity, std::move(terms)}); }
  int at_most(double bound, std::vector<Term> terms) { return add_row({-infinity, bound, std::move(terms)}); }

  std::vector<Column> columns;
  std::vector<Row> rows;
};

struct Limits {
  std::uint32_t nodes = 1000;  ///< of the search tree
  double relative_gap = 0;     ///< between solution and bound: what is close enough
  double cutoff = infinity;    ///< solutions of this objective or more are of no use
  /// Asked after some work with the best objective (or infinity) and the bound so far; false stops. Empty: never.
  std::function<bool(double objective, double bound)> go_on{};
};

enum class Outcome : std::uint8_t {
  optimal,     ///< `values` are an optimum, within the gap asked for
  none_below,  ///< proven: no solution below the cutoff (or none at all)
  stopped,     ///< by a limit; `values` are empty, or the best found
};

struct Solution {
  Outcome outcome = Outcome::stopped;
  double objective = infinity;  ///< of `values`
  double bound = -infinity;     ///< no solution has less
  std::vector<double> values;   ///< per column
};

/// Integers as any number: solved by Clp.
[[nodiscard]] Solution solve_relaxation(const Program& program, const Limits& limits);

/// Solved by Cbc, in this thread, without output. Same input, same result, as far as `go_on` answers the same.
[[nodiscard]] Solution solve(const Program& program, const Limits& limits);

}  // namespace swapmm::planning::ilp
