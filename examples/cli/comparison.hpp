// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <swapmm/plan/machine.hpp>
#include <swapmm/plan/plan.hpp>

namespace swapmm::cli {

/// What one planner made of one trace on one machine.
struct Comparison {
  std::string trace;
  double compute_scale = 1;
  Machine machine;
  Bytes peak;  ///< of live bytes
  std::string planner;
  std::optional<Prediction> predicted;  ///< none: `problem` says why
  std::string problem;
  std::chrono::nanoseconds bound{0};  ///< the best of all planners on this trace and machine
  std::chrono::nanoseconds planning{0};
  std::vector<std::string> notes{};  ///< on what the planner could not do
};

void print_comparison_table(const std::vector<Comparison>& rows);
/// With a line of names, fields quoted as RFC 4180 asks where they must be, lines ended by a newline alone.
void print_comparison_csv(const std::vector<Comparison>& rows);
void print_comparison_json(const std::vector<Comparison>& rows);

}  // namespace swapmm::cli
