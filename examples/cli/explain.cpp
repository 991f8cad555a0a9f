// SPDX-License-Identifier: Apache-2.0
// swapmm explain: which operations wait and why, which tensors are out and when.
#include <algorithm>
#include <chrono>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include <swapmm/answers/explanation.hpp>
#include <swapmm/base/text/figures.hpp>
#include <swapmm/plan/explain.hpp>
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
  const Trace trace = load_any_trace(options.trace);
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
    print_json(explanation_as_json(trace, plan, prediction, stalls, absences, options.top));
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
