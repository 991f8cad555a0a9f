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

#include <swapmm/answers/fit.hpp>
#include <swapmm/answers/stall_search.hpp>
#include <swapmm/base/text/figures.hpp>
#include <swapmm/plan/explain.hpp>
#include <swapmm/plan/split/quantity.hpp>
#include <swapmm/plan/stalls.hpp>

#include "command_line.hpp"
#include "files.hpp"
#include "fit_many.hpp"
#include "fit_split.hpp"
#include "machine_options.hpp"
#include "many_memories.hpp"
#include "output.hpp"
#include "planning.hpp"
#include "printable.hpp"
#include "quantities.hpp"

namespace swapmm::cli {
namespace {

struct FitOptions {
  CommonOptions common;
  std::string trace;
  MachineOptions machine;
  std::string planner = "best";
  TimeLimit limit;
  Ways ways;
  std::uint64_t top = 5;
  bool this_budget_only = false;
  std::string split;  ///< another trace of the program; empty: the batch is not split
  std::vector<std::uint64_t> batches;
  std::optional<std::uint64_t> batch;
};

std::string operation_text(const Trace& trace, std::size_t operation) {
  return "operation " + numbered(operation, trace.operations[operation].name);
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
  const Bytes shortfall = shortfall_of(need, machine);
  if (options.common.json) {
    print_json(misfit_as_json(trace, machine, need, problem, options.top));
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

ExitCode tell_fit(const FitOptions& options, const Trace& trace, const Need& need, const Plan& plan,
                  const std::optional<StallEnd>& end) {
  const std::vector<Stall> stalls = find_stalls(trace, plan);
  if (options.common.json) {
    print_json(fit_as_json(trace, plan, need, options.planner, end, stalls, options.top));
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
  if (options.split.empty() && (!options.batches.empty() || options.batch)) {
    throw Failure(ExitCode::usage, "--batches and --batch are only for --split");
  }
  const std::string text_of_machine = machine_text(options.machine);
  if (!options.split.empty()) {
    if (is_version_2(text_of_machine)) throw Failure(ExitCode::usage, "--split is only for machines of version 1");
    return fit_split({options.common.json, options.common.quiet, options.trace, options.split, options.batches,
                      options.batch, options.machine, options.planner, options.limit, options.top},
                     text_of_machine);
  }
  const Trace trace = load_any_trace(options.trace);
  if (is_version_2(text_of_machine) || needs_version_2(trace)) {
    check_plans_for_many(options.planner);
    return fit_many({options.common.json, options.common.quiet, options.machine.budget, options.planner, options.limit,
                     options.ways, options.this_budget_only},
                    trace, machine_for_many(options.machine, trace, text_of_machine, true));
  }
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
    const auto plan_on = [&](const Machine& other) {
      return run_planner(options.planner, trace, other, options.limit, progress);
    };
    end = find_stall_end(trace, *planned.plan, need.liveness, plan_on, progress);
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
  add_ways_option(command, options->ways);
  add_parsed(command, "--top", options->top, parse_whole_in<0, 1'000'000>, "So many stalls and tensors [5]", "N");
  command.add_flag("--this-budget-only", options->this_budget_only,
                   "Do not look for the budget at which stalls end, which takes some eight plans more");
  using planning::most_samples;
  command
      .add_option("--split", options->split,
                  "Whether it fits if the batch is divided into pieces: a trace of the same program with another batch")
      ->type_name("TRACE");
  add_list(command, "--batches", options->batches, parse_whole_in<1, most_samples>,
           "With --split: the numbers of samples of TRACE and of the other one: 256,64", "N,N");
  add_parsed(command, "--batch", options->batch, parse_whole_in<1, most_samples>,
             "With --split: the number of samples to divide [that of TRACE]", "N");
  command.footer("Exit code 1 where it does not fit. The budget at which stalls end is found to 2 % of the peak.\n");
}

}  // namespace swapmm::cli
