// SPDX-License-Identifier: Apache-2.0
#include "check.hpp"

#include <swapmm/formats/trace_json.hpp>
#include <swapmm/options.hpp>
#include <swapmm/plan/ilp.hpp>
#include <swapmm/plan/validate.hpp>

#include <chrono>

int check_ilp() {
  const auto trace = swapmm::read_trace(R"({"format": "swapmm-trace", "version": 1, "name": "two",
      "tensors": [{"name": "a", "bytes": 64, "kind": "persistent"}, {"name": "b", "bytes": 64, "kind": "persistent"}],
      "operations": [{"name": "o", "duration_ns": 1000, "reads": [], "writes": [], "updates": [0]},
                     {"name": "p", "duration_ns": 1000, "reads": [], "writes": [], "updates": [1]}]})");
  if (!trace) return expect("ilp: the trace", false);
  swapmm::Machine machine;
  machine.device_budget = swapmm::Bytes{64};
  machine.h2d = machine.d2h = {1'000'000'000, std::chrono::nanoseconds{0}};
  const auto result = swapmm::plan_by_ilp(*trace, machine);
  int failed = expect("ilp: a valid plan", result.has_value() && swapmm::validate(*trace, result->plan).empty());
  // Handed to the core's scheduler, it plans like one of the core's own.
  swapmm::SchedulerOptions options;
  options.planner = swapmm::ilp_planner();
  failed += expect("ilp: a planner for a scheduler", options.planner.plan(*trace, machine, {}).has_value());
  return failed;
}
