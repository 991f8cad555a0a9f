// SPDX-License-Identifier: Apache-2.0
#include <swapmm/answers/comparison.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include <swapmm/answers/machine.hpp>
#include <swapmm/base/text/utf8.hpp>
#include <swapmm/ir/limits.hpp>

namespace swapmm::answers {

using std::chrono::nanoseconds;

std::optional<double> of_ideal(const Comparison& row) {
  return fraction_of_ideal(row.predicted->compute, row.predicted->iteration);
}
std::optional<double> gap_of(const Comparison& row) {
  const std::optional<double> above = ratio(row.predicted->iteration, row.bound);
  return above ? std::optional(*above - 1) : std::nullopt;
}

Comparison setting_for(const Trace& trace, double compute_scale, const Machine& machine, Bytes peak) {
  Comparison setting;
  setting.trace = trace.name;
  setting.compute_scale = compute_scale;
  setting.machine = machine;
  setting.machine.name = describe(machine);
  setting.peak = peak;
  return setting;
}

Predicted predicted(const Planned& planned) {
  if (!planned.plan) return {planned.plan.problem(), planned.took, planned.notes};
  return {planned.plan->predicted, planned.took, planned.notes};
}

void compare_planners(const std::vector<std::string>& planners, const PredictBy& predict_by, const Trace& trace,
                      const Comparison& setting, Watcher& watcher, std::vector<Comparison>& rows) {
  const std::size_t first = rows.size();
  nanoseconds bound{0};
  for (const std::string& planner : planners) {
    watcher.begin(text::to_valid_utf8(trace.name, limits::name_bytes) + ", " + describe(setting.machine) + ", " +
                  planner);
    Predicted made = predict_by(planner, trace, setting.machine);
    Comparison row = setting;
    row.planner = planner;
    row.planning = made.took;
    row.notes = std::move(made.notes);
    if (made.prediction) {
      row.predicted = *made.prediction;
      bound = std::max(bound, made.prediction->lower_bound);
    } else {
      row.problem = made.prediction.problem().message;
    }
    rows.push_back(std::move(row));
  }
  for (std::size_t i = first; i < rows.size(); ++i) rows[i].bound = bound;
}

Result<Trace> with_scaled_compute(Trace trace, double scale) {
  for (TraceOperation& operation : trace.operations) {
    operation.duration = nanoseconds{std::llround(static_cast<double>(operation.duration.count()) * scale)};
  }
  if (const Check check = check_trace(trace); !check) return check.problem();
  return trace;
}

json::object comparison_as_json(const std::vector<Comparison>& rows) {
  json::array list;
  for (const Comparison& row : rows) {
    json::object entry;
    entry["trace"] = json_name(row.trace);
    entry["compute_scale"] = row.compute_scale;
    entry["machine"] = to_json(row.machine);
    entry["peak_bytes"] = row.peak.value;
    entry["planner"] = row.planner;
    entry["planning_ns"] = row.planning.count();
    entry["notes"] = json_names(row.notes);
    if (row.predicted) {
      entry["predicted"] = to_json(*row.predicted);
      entry["lower_bound_ns"] = row.bound.count();
      entry["fraction_of_ideal"] = json_number(of_ideal(row));
      entry["gap"] = json_number(gap_of(row));
    } else {
      entry["problem"] = json_name(row.problem);
    }
    list.push_back(std::move(entry));
  }
  return {{"rows", std::move(list)}};
}

}  // namespace swapmm::answers
