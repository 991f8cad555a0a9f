// SPDX-License-Identifier: Apache-2.0
// swapmm fit: does a program fit into so much memory, and what does it cost?
#include <algorithm>
#include <chrono>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/base/text/figures.hpp>
#include <swapmm/ir/limits.hpp>
#include <swapmm/ir/liveness.hpp>
#include <swapmm/plan/explain.hpp>
#include <swapmm/plan/stalls.hpp>

#include "command_line.hpp"
#include "files.hpp"
#include "fit_many.hpp"
#include "machine_options.hpp"
#include "output.hpp"
#include "planning.hpp"
#include "printable.hpp"
#include "quantities.hpp"
#include "stall_search.hpp"

namespace swapmm::cli {
namespace {

struct FitOptions {
  CommonOptions common;
  std::string trace;
  MachineOptions machine;
  std::string planner = "best";
  TimeLimit limit;
  std::uint64_t top = 5;
  bool this_budget_only = false;
};

std::string operation_text(const Trace& trace, std::size_t operation) {
  return "operation " + numbered(operation, trace.operations[operation].name);
}

/// What a trace needs, whatever the plan.
struct Need {
  Liveness liveness;
  std::size_t peak_operation = 0;
  std::size_t largest_operation = 0;
  std::vector<TensorId> largest;           ///< the tensors of the largest bundle, the largest first
  std::vector<TensorId> above_allocation;  ///< used, and larger than any single allocation; the largest first
};

Need find_need(const Trace& trace, const Machine& machine) {
  Need need{analyze_liveness(trace, machine.alignment), 0, 0, {}, {}};
  const std::vector<Bytes>& live = need.liveness.live;
  need.peak_operation = static_cast<std::size_t>(std::max_element(live.begin(), live.end()) - live.begin());
  need.largest_operation = index(need.liveness.largest_bundle_operation);
  for_each_access(trace.operations[need.largest_operation], [&](TensorId id, Access) { need.largest.push_back(id); });
  const auto bytes = [&](TensorId id) { return trace.tensors[index(id)].bytes; };
  const auto larger = [&](TensorId a, TensorId b) { return bytes(a) > bytes(b); };
  std::stable_sort(need.largest.begin(), need.largest.end(), larger);
  for (std::size_t t = 0; machine.max_allocation && t < trace.tensors.size(); ++t) {
    const bool fits = round_up(trace.tensors[t].bytes, machine.alignment) <= *machine.max_allocation;
    if (!fits && !need.liveness.uses[t].empty()) need.above_allocation.push_back(id_at<TensorId>(t));
  }
  std::stable_sort(need.above_allocation.begin(), need.above_allocation.end(), larger);
  return need;
}

json::array tensors_as_json(const std::vector<TensorId>& tensors, const Trace& trace, std::size_t top) {
  json::array list;
  for (const TensorId id : tensors) {
    if (list.size() == top) break;
    const TraceTensor& tensor = trace.tensors[index(id)];
    list.push_back(
        json::object{{"tensor", index(id)}, {"name", json_name(tensor.name)}, {"bytes", tensor.bytes.value}});
  }
  return list;
}

json::object to_json(const Need& need, const Trace& trace, std::size_t top) {
  json::object answer;
  answer["peak_bytes"] = need.liveness.peak.value;
  answer["peak_operation"] = need.peak_operation;
  answer["peak_operation_name"] = json_name(trace.operations[need.peak_operation].name);
  json::object bundle;
  bundle["bytes"] = need.liveness.largest_bundle.value;
  bundle["operation"] = need.largest_operation;
  bundle["operation_name"] = json_name(trace.operations[need.largest_operation].name);
  bundle["largest_tensors"] = tensors_as_json(need.largest, trace, top);
  answer["largest_bundle"] = std::move(bundle);
  return answer;
}

void print_need(const Need& need, const Trace& trace, const Machine& machine) {
  const double k = static_cast<double>(need.liveness.peak.value) / static_cast<double>(machine.device_budget.value);
  print_line("needs", decimal_size(need.liveness.peak) + " live at the peak, " +
                          operation_text(trace, need.peak_operation) + "; " + ratio_text(k) + " x the budget");
  print_line("largest bundle",
             decimal_size(need.liveness.largest_bundle) + ", " + operation_text(trace, need.largest_operation));
}

void print_tensors(const std::vector<TensorId>& tensors, const Trace& trace, std::size_t top) {
  for (std::size_t i = 0; i < std::min(top, tensors.size()); ++i) {
    const TraceTensor& tensor = trace.tensors[index(tensors[i])];
    std::cout << "  " << decimal_size(tensor.bytes) << "  tensor " << numbered(index(tensors[i]), tensor.name) << ", "
              << to_string(tensor.kind) << '\n';
  }
}

/// The answer no, with what stands in the way.
ExitCode tell_misfit(const FitOptions& options, const Trace& trace, const Machine& machine, const Need& need,
                     const std::string& problem) {
  const Bytes largest = need.liveness.largest_bundle;
  const Bytes shortfall = largest > machine.device_budget ? largest - machine.device_budget : Bytes{0};
  if (options.common.json) {
    json::object answer;
    answer["fits"] = false;
    answer["trace"] = json_name(trace.name);
    answer["machine"] = cli::to_json(machine);
    answer["needs"] = to_json(need, trace, options.top);
    answer["problem"] = json_name(problem);
    answer["shortfall_bytes"] = shortfall.value;
    answer["above_max_allocation"] = tensors_as_json(need.above_allocation, trace, options.top);
    print_json(answer);
    return ExitCode::no;
  }
  std::cout << printable(trace.name) << " on " << describe(machine) << "\n\n";
  print_line("fits", "no: " + problem);
  print_need(need, trace, machine);
  if (shortfall.value > 0) {
    print_line("short of", decimal_size(shortfall) + ": no plan works with less than the largest bundle");
  }
  if (shortfall.value > 0 || need.above_allocation.empty()) {
    std::cout << "\nthe largest tensors of that bundle:\n";
    print_tensors(need.largest, trace, options.top);
  }
  if (!need.above_allocation.empty()) {
    std::cout << "\ntensors above the largest allocation of " << decimal_size(*machine.max_allocation) << ":\n";
    print_tensors(need.above_allocation, trace, options.top);
  }
  return ExitCode::no;
}

std::string stall_end_text(const StallEnd& end) {
  if (!end.budget) return "at no budget that was tried";
  std::string text = decimal_size(*end.budget);
  if (end.first_that_fits) text += ", the least that fits";
  if (end.always.count() > 0) text += " (but for " + text::time_text(end.always) + " that wait at any budget)";
  return text;
}

json::object to_json(const StallEnd& end) {
  json::object answer;
  answer["budget_bytes"] = end.budget ? json::value(end.budget->value) : nullptr;
  answer["least_that_fits"] = end.first_that_fits;
  answer["always_ns"] = end.always.count();
  answer["plans_made"] = end.plans;
  return answer;
}

ExitCode tell_fit(const FitOptions& options, const Trace& trace, const Need& need, const Plan& plan,
                  const std::optional<StallEnd>& end) {
  const std::vector<Stall> stalls = find_stalls(trace, plan);
  if (options.common.json) {
    json::object answer;
    answer["fits"] = true;
    answer["trace"] = json_name(trace.name);
    answer["machine"] = cli::to_json(plan.machine);
    answer["planner"] = options.planner;
    answer["needs"] = to_json(need, trace, options.top);
    answer["predicted"] = cli::to_json(plan.predicted);
    answer["host_bytes"] = host_bytes(trace, plan).value;
    answer["stalls_end"] = end ? json::value(to_json(*end)) : nullptr;
    answer["stalls_found"] = stalls.size();
    answer["stalls"] = cli::to_json(stalls, options.top, trace, plan);
    print_json(answer);
    return ExitCode::ok;
  }
  std::cout << printable(trace.name) << " on " << describe(plan.machine) << "\n\n";
  print_line("fits", "yes, with planner " + options.planner);
  print_need(need, trace, plan.machine);
  print_prediction(plan.predicted);
  print_line("host memory", decimal_size(host_bytes(trace, plan)));
  if (end) print_line("stalls end at", stall_end_text(*end));
  print_stalls(stalls, options.top, trace, plan);
  return ExitCode::ok;
}

ExitCode run_fit(const FitOptions& options) {
  const std::string text_of_machine = machine_text(options.machine);
  if (is_version_2(text_of_machine)) {
    check_plans_for_many(options.planner);
    return fit_many({options.common.json, options.common.quiet, options.trace, options.machine, options.planner,
                     options.limit, options.this_budget_only},
                    text_of_machine);
  }
  const Trace trace = load_trace(options.trace);
  const Machine machine = make_machine(options.machine, trace, text_of_machine);
  const Need need = find_need(trace, machine);
  Progress progress(options.common.quiet);
  progress.begin("planning with " + options.planner);
  const Planned planned = run_planner(options.planner, trace, machine, options.limit, progress);
  if (!planned.plan) {
    progress.end();
    return tell_misfit(options, trace, machine, need, planned.plan.problem().message);
  }
  std::optional<StallEnd> end;
  if (!options.this_budget_only) {
    end = find_stall_end(trace, *planned.plan, need.liveness, options.planner, options.limit, progress);
  }
  progress.end();
  tell_notes(planned.notes);
  return tell_fit(options, trace, need, *planned.plan, end);
}

}  // namespace

void add_fit(CLI::App& program, Chosen& chosen) {
  const auto options = std::make_shared<FitOptions>();
  CLI::App& command =
      add_command(program, chosen, "fit",
                  "Whether a program fits into a budget, what it costs, and what stands in the way", options, run_fit);
  command.add_option("TRACE", options->trace, "A file of format swapmm-trace")->required()->type_name("");
  add_machine_options(command, options->machine);
  add_planner_options(command, options->planner, options->limit);
  add_parsed(command, "--top", options->top, parse_whole_in<0, 1'000'000>, "So many stalls and tensors [5]", "N");
  command.add_flag("--this-budget-only", options->this_budget_only,
                   "Do not look for the budget at which stalls end, which takes some eight plans more");
  command.footer("Exit code 1 where it does not fit. The budget at which stalls end is found to 2 % of the peak.\n");
}

}  // namespace swapmm::cli
