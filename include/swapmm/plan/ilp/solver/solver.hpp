// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace swapmm::planning::ilp {

inline constexpr double infinity = std::numeric_limits<double>::max();

/// One term of a row.
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
    std::vector<Term> terms;  ///< a column may appear several times
  };

  /// Each returns the position of the new column or row.
  int add_column(const Column& column);
  int add_binary(double cost = 0) { return add_column({0, 1, cost, true}); }
  int add_row(Row row);
  /// Adds a row: the sum of the terms is at least, or at most, `bound`.
  int at_least(double bound, std::vector<Term> terms) { return add_row({bound, infinity, std::move(terms)}); }
  int at_most(double bound, std::vector<Term> terms) { return add_row({-infinity, bound, std::move(terms)}); }

  std::vector<Column> columns;
  std::vector<Row> rows;
};

struct Limits {
  std::uint32_t nodes = 1000;  ///< largest number of nodes of the search tree
  double relative_gap = 0;     ///< a solution this close to the bound is good enough
  double cutoff = infinity;    ///< only solutions below this objective count
  /// Called after some work with the best objective (or infinity) and the bound so far. The solver stops if it returns
  /// false. Empty: the solver never stops for it.
  std::function<bool(double objective, double bound)> go_on{};
};

enum class Outcome : std::uint8_t {
  optimal,     ///< `values` are an optimum, within Limits::relative_gap
  none_below,  ///< proven: no solution below the cutoff (or none at all)
  stopped,     ///< by a limit; `values` are the best that was found, or empty
  failed,      ///< the solver failed, as `problem` says; nothing is proven, and there are no values
};

struct Solution {
  Outcome outcome = Outcome::stopped;
  double objective = infinity;  ///< of `values`
  double bound = -infinity;     ///< no solution has less
  std::vector<double> values;   ///< per column
  std::string problem{};        ///< why it failed
};

/// A solution that says why the solver failed.
[[nodiscard]] Solution failed(std::string problem);

/// What solves programs. Functions, so that tests can have them fail.
struct Solver {
  /// Solves the program, whose integers may take any value.
  std::function<Solution(const Program&, const Limits&)> relax;
  /// Solves the program.
  std::function<Solution(const Program&, const Limits&)> solve;
};

/// Solves the program with Clp. Integers may take any value.
[[nodiscard]] Solution solve_relaxation(const Program& program, const Limits& limits);

/// Solves the program with Cbc, in this thread, without output. The same input gives the same result, provided that
/// `go_on` gives the same answers. An error of the solver or a lack of memory is an outcome; what `go_on` throws passes
/// through, once the solver has stopped.
[[nodiscard]] Solution solve(const Program& program, const Limits& limits);

/// Both.
[[nodiscard]] const Solver& cbc();

}  // namespace swapmm::planning::ilp
