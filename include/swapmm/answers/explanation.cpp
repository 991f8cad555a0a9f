// SPDX-License-Identifier: Apache-2.0
#include <swapmm/answers/explanation.hpp>

#include <string>
#include <utility>

#include <swapmm/base/result.hpp>
#include <swapmm/plan/bound.hpp>
#include <swapmm/plan/simulate.hpp>

namespace swapmm::answers {
namespace {

json::array to_json(const std::vector<PlannedAbsence>& absences, std::size_t most, const Trace& trace) {
  json::array list;
  for (const PlannedAbsence& absence : absences) {
    if (list.size() == most) break;
    json::object entry;
    entry["tensor"] = index(absence.tensor);
    entry["tensor_name"] = json_name(trace.tensors[index(absence.tensor)].name);
    entry["tensor_bytes"] = trace.tensors[index(absence.tensor)].bytes.value;
    entry["time_ns"] = absence.time.count();
    entry["crosses_wrap"] = absence.crosses_wrap;
    entry["release"] = index(absence.release);
    entry["swap_in"] = index(absence.swap_in);
    if (absence.last_use) entry["last_use"] = index(*absence.last_use);
    if (absence.next_use) entry["next_use"] = index(*absence.next_use);
    list.push_back(std::move(entry));
  }
  return list;
}

}  // namespace

Prediction prediction_of(const Trace& trace, const Plan& plan) {
  const Simulation simulation = simulate(trace, plan);
  // Everything is looked at anew: the trace may have other durations than the one that was planned, and anybody may
  // have written the plan.
  const Result<std::chrono::nanoseconds> bound = lower_bound(trace, plan.machine);
  return {simulation.iteration, simulation.compute, bound ? *bound : simulation.compute,
          simulation.h2d,       simulation.d2h,     simulation.peak};
}

json::object explanation_as_json(const Trace& trace, const Plan& plan, const Prediction& prediction,
                                 const std::vector<Stall>& stalls, const std::vector<PlannedAbsence>& absences,
                                 std::size_t top) {
  json::object answer;
  answer["trace"] = json_name(trace.name);
  answer["planner"] = json_name(plan.planner);
  answer["machine"] = answers::to_json(plan.machine);
  answer["predicted"] = answers::to_json(prediction);
  answer["host_bytes"] = host_bytes(trace, plan).value;
  answer["stalls_found"] = stalls.size();
  answer["stalls"] = answers::to_json(stalls, top, trace, plan);
  answer["absences_found"] = absences.size();
  answer["absences"] = to_json(absences, top, trace);
  return answer;
}

json::object plan_as_json(const Trace& trace, const Planned& planned, std::string_view planner) {
  const Plan& plan = *planned.plan;
  json::object answer;
  answer["trace"] = json_name(trace.name);
  answer["planner"] = json_name(planner);
  answer["machine"] = answers::to_json(plan.machine);
  answer["predicted"] = answers::to_json(plan.predicted);
  answer["host_bytes"] = host_bytes(trace, plan).value;
  answer["commands"] = plan.commands.size();
  answer["planning_ns"] = planned.took.count();
  answer["notes"] = json_names(planned.notes);
  return answer;
}

std::string_view name_of_rule(int rule) {
  switch (rule) {
    case 0: return "structure";
    case 1: return "start of commands";
    case 2: return "start of operations, order of engines";
    case 3: return "places";
    case 4: return "values";
    case 5: return "closing on itself";
    case 6: return "order whatever things take";
    case 7: return "no circle of waits";
    default: return "unknown";
  }
}

json::object violations_as_json(const std::vector<Violation>& violations) {
  json::array list;
  for (const Violation& violation : violations) {
    list.push_back(json::object{{"rule", violation.rule},
                                {"name", std::string(name_of_rule(violation.rule))},
                                {"message", json_name(violation.message)}});
  }
  return {{"valid", violations.empty()}, {"violations", std::move(list)}};
}

}  // namespace swapmm::answers
