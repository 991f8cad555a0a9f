// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <swapmm/answers/as_json.hpp>
#include <swapmm/answers/planning.hpp>
#include <swapmm/base/bytes.hpp>
#include <swapmm/base/result.hpp>
#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/machine.hpp>
#include <swapmm/plan/plan.hpp>

// Planners side by side.

namespace swapmm::answers {

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

/// compute / iteration; none without computation.
[[nodiscard]] std::optional<double> of_ideal(const Comparison& row);
/// iteration / bound, less 1.
[[nodiscard]] std::optional<double> gap_of(const Comparison& row);

/// A row without a planner's plan.
[[nodiscard]] Comparison setting_for(const Trace& trace, double compute_scale, const Machine& machine, Bytes peak);

/// What a planner's plan is predicted to do.
struct Predicted {
  Result<Prediction> prediction;
  std::chrono::nanoseconds took{0};
  std::vector<std::string> notes{};
};
/// Of its plan.
[[nodiscard]] Predicted predicted(const Planned& planned);

/// Plans by the planner of that name.
using PredictBy = std::function<Predicted(const std::string& planner, const Trace& trace, const Machine& machine)>;

/// Adds a row for each planner on one trace and machine. Gaps are to the best bound that any of them has proven.
void compare_planners(const std::vector<std::string>& planners, const PredictBy& predict_by, const Trace& trace,
                      const Comparison& setting, Watcher& watcher, std::vector<Comparison>& rows);

/// The trace with that factor on the durations of its operations.
[[nodiscard]] Result<Trace> with_scaled_compute(Trace trace, double scale);

[[nodiscard]] json::object comparison_as_json(const std::vector<Comparison>& rows);

}  // namespace swapmm::answers
