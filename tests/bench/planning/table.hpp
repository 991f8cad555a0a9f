// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

namespace swapmm::bench {

/// What was measured, as text in rows and columns.
struct Table {
  std::string title;
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;  ///< as many cells as columns
};

/// What a part of the benchmark found.
struct Report {
  Table rows;                      ///< everything, for files
  std::vector<Table> summaries;    ///< what is printed; none: the rows
  std::vector<std::string> lines;  ///< sentences, printed below
  bool is_sound = true;            ///< false: a plan that breaks a rule, or is faster than the bound
};

/// So many digits behind the point.
[[nodiscard]] std::string fixed(double value, int digits);

/// As docs/planning.md holds them.
void print(std::ostream& out, const Report& report);
void print_json(std::ostream& out, const std::string& part, const Report& report);
/// The columns, then the rows. No field holds a comma or a quote, but for messages, which are quoted.
void write_csv(std::ostream& out, const Table& table);

}  // namespace swapmm::bench
