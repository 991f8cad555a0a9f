// SPDX-License-Identifier: Apache-2.0
#include "comparison.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <iostream>
#include <optional>
#include <utility>

#include <swapmm/base/text/figures.hpp>

#include "csv.hpp"
#include "machine_options.hpp"
#include "output.hpp"
#include "printable.hpp"
#include "quantities.hpp"

namespace swapmm::cli {
namespace {

std::optional<double> share_of_peak(const Comparison& row) {
  if (row.peak.value == 0) return std::nullopt;
  return static_cast<double>(row.machine.device_budget.value) / static_cast<double>(row.peak.value);
}

/// Empty for none.
std::string number(std::optional<double> number) {
  if (!number) return "";
  const double value = *number;
  std::array<char, 32> text{};
  const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} ? std::string(text.data(), end) : "";
}

}  // namespace

void print_comparison_table(const std::vector<Comparison>& rows) {
  std::vector<std::vector<std::string>> table{{"trace", "compute x", "link", "budget", "of peak", "planner",
                                               "iteration", "of ideal", "gap", "in", "out", "planned in"}};
  std::vector<std::string> problems;
  const auto tell = [&](const Comparison& row, const std::string& text) {
    problems.push_back(row.planner + ", " + row.trace + ", " + decimal_size(row.machine.device_budget) + ": " + text);
  };
  for (const Comparison& row : rows) {
    std::vector<std::string> cells{printable(row.trace),           number(row.compute_scale),
                                   describe_links(row.machine),    decimal_size(row.machine.device_budget),
                                   ratio_text(share_of_peak(row)), row.planner};
    if (row.predicted) {
      for (std::string& cell : std::vector{text::time_text(row.predicted->iteration), ratio_text(of_ideal(row)),
                                           percent(gap_of(row)), decimal_size(row.predicted->h2d),
                                           decimal_size(row.predicted->d2h), text::time_text(row.planning)}) {
        cells.push_back(std::move(cell));
      }
    } else {
      cells.push_back("no plan");
      tell(row, row.problem);
    }
    for (const std::string& note : row.notes) tell(row, note);
    table.push_back(std::move(cells));
  }
  print_table(table);
  std::vector<std::string> idle;  // traces without computation, each once
  for (const Comparison& row : rows) {
    if (!row.predicted || row.predicted->compute.count() != 0) continue;
    if (std::find(idle.begin(), idle.end(), row.trace) == idle.end()) idle.push_back(row.trace);
  }
  for (const std::string& trace : idle) std::cout << printable(trace) << ": n/a, " << no_computation << '\n';
  for (const std::string& problem : problems) std::cout << printable(problem) << '\n';
}

void print_comparison_csv(const std::vector<Comparison>& rows) {
  std::cout << "trace,compute_scale,h2d_bytes_per_second,d2h_bytes_per_second,budget_bytes,peak_bytes,planner,"
               "iteration_ns,compute_ns,lower_bound_ns,fraction_of_ideal,gap,h2d_bytes,d2h_bytes,planning_ns,problem\n";
  for (const Comparison& row : rows) {
    std::vector<std::string> fields{row.trace,
                                    number(row.compute_scale),
                                    std::to_string(row.machine.h2d.bytes_per_second),
                                    std::to_string(row.machine.d2h.bytes_per_second),
                                    std::to_string(row.machine.device_budget.value),
                                    std::to_string(row.peak.value),
                                    row.planner};
    if (row.predicted) {
      const Prediction& predicted = *row.predicted;
      for (std::string& field :
           std::vector{std::to_string(predicted.iteration.count()), std::to_string(predicted.compute.count()),
                       std::to_string(row.bound.count()), number(of_ideal(row)), number(gap_of(row)),
                       std::to_string(predicted.h2d.value), std::to_string(predicted.d2h.value)}) {
        fields.push_back(std::move(field));
      }
    } else {
      fields.resize(fields.size() + 7);
    }
    fields.push_back(std::to_string(row.planning.count()));
    fields.push_back(row.problem);
    std::cout << csv_line(fields);
  }
}

void print_comparison_json(const std::vector<Comparison>& rows) { print_json(comparison_as_json(rows)); }

}  // namespace swapmm::cli
