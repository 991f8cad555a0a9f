// SPDX-License-Identifier: Apache-2.0
// swapmm explain: which operations wait and why, which tensors are out and when.
#include <algorithm>
#include <chrono>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include <swapmm/base/text/figures.hpp>
#include <swapmm/plan/explain.hpp>
#include <swapmm/plan/relaxation/lower_bound.hpp>
#include <swapmm/plan/simulate.hpp>
#include <swapmm/plan/stalls.hpp>

#include "command_line.hpp"
#include "files.hpp"
#include "machine_options.hpp"
#include "many_memories.hpp"
#include "output.hpp"
#include "printable.hpp"
#include "quantities.hpp"

namespace swapmm::cli {
namespace {

struct ExplainOptions {
  CommonOptions common;
  std::string trace;
  std::string plan;
  std::uint64_t top = 10;
};

Prediction prediction_of(const Trace& trace, const Plan& plan) {
  const Simulation simulation = simulate(trace, plan);
  // Everything is looked at anew: the trace may have other durations than the one that was planned, and anybody may
  // have written the plan.
  const Result<std::chrono::nanoseconds> bound = lower_bound(trace, plan.machine);
  return {simulation.iteration, simulation.compute, bound ? *bound : simulation.compute,
          simulation.h2d,       simulation.d2h,     simulation.peak};
}

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

std::string absence_text(const PlannedAbsence& absence, const Trace& trace) {
  const TraceTensor& tensor = trace.tensors[index(absence.tensor)];
  std::string text = "tensor " + numbered(index(absence.tensor), tensor.name) + " (" + decimal_size(tensor.bytes) + ")";
  const auto operation = [&](OperationId id) { return numbered(index(id), trace.operations[index(id)].name); };
  if (absence.last_use) text += ", after operation " + operation(*absence.last_use);
  if (absence.next_use) text += ", until operation " + operation(*absence.next_use);
  if (absence.last_use && absence.next_use && *absence.next_use <= *absence.last_use) text += " of the next iteration";
  return text;
}

void print_absences(const std::vector<PlannedAbsence>& absences, std::size_t most, const Trace& trace) {
  std::cout << '\n'
            << absences.size() << (absences.size() == 1 ? " time" : " times")
            << " a tensor is on the host alone between two uses";
  std::cout << (absences.empty() ? "\n" : "; the longest:\n");
  for (std::size_t i = 0; i < std::min(most, absences.size()); ++i) {
    std::string time = text::time_text(absences[i].time);
    time.insert(0, time.size() < 12 ? 12 - time.size() : 0, ' ');
    std::cout << time << "  " << absence_text(absences[i], trace) << '\n';
  }
}

ExitCode run_explain(const ExplainOptions& options) {
  const Trace trace = any_trace_from(options.trace, load_text(options.trace));
  const std::string text = load_text(options.plan);
  if (is_version_2(text) || needs_version_2(trace)) {
    explain_many(trace, valid_plan_v2_from(options.plan, text, trace), options.top, options.common.json);
    return ExitCode::ok;
  }
  const Plan plan = valid_plan_from(options.plan, text, trace);
  const Prediction prediction = prediction_of(trace, plan);
  const std::vector<Stall> stalls = find_stalls(trace, plan);
  const std::vector<PlannedAbsence> absences = find_absences(trace, plan);
  if (options.common.json) {
    json::object answer;
    answer["trace"] = json_name(trace.name);
    answer["planner"] = json_name(plan.planner);
    answer["machine"] = cli::to_json(plan.machine);
    answer["predicted"] = cli::to_json(prediction);
    answer["host_bytes"] = host_bytes(trace, plan).value;
    answer["stalls_found"] = stalls.size();
    answer["stalls"] = cli::to_json(stalls, options.top, trace, plan);
    answer["absences_found"] = absences.size();
    answer["absences"] = to_json(absences, options.top, trace);
    print_json(answer);
    return ExitCode::ok;
  }
  std::cout << printable(trace.name) << ", planned by " << printable(plan.planner) << " for " << describe(plan.machine)
            << "\n\n";
  print_prediction(prediction);
  print_line("host memory", decimal_size(host_bytes(trace, plan)));
  print_stalls(stalls, options.top, trace, plan);
  print_absences(absences, options.top, trace);
  return ExitCode::ok;
}

}  // namespace

void add_explain(CLI::App& program, Chosen& chosen) {
  const auto options = std::make_shared<ExplainOptions>();
  CLI::App& command = add_command(
      program, chosen, "explain",
      "Which operations of a plan wait and why, which tensors are out and when; longest first", options, run_explain);
  command.add_option("TRACE", options->trace, "A file of format swapmm-trace")->required()->type_name("");
  command.add_option("PLAN", options->plan, "A file of format swapmm-plan, valid for the trace")
      ->required()
      ->type_name("");
  add_parsed(command, "--top", options->top, parse_whole_in<0, 1'000'000>, "So many of each [10]", "N");
}

}  // namespace swapmm::cli
