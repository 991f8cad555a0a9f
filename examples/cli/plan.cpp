// SPDX-License-Identifier: Apache-2.0
// swapmm plan: makes a plan.
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>

#include <swapmm/answers/explanation.hpp>
#include <swapmm/answers/ways/ways.hpp>
#include <swapmm/base/text/figures.hpp>
#include <swapmm/formats/plan_json.hpp>
#include <swapmm/formats/trace_json.hpp>
#include <swapmm/formats/v2/plan_json.hpp>
#include <swapmm/plan/changed_trace.hpp>
#include <swapmm/plan/explain.hpp>
#include <swapmm/plan/v2/planners.hpp>
#include <swapmm/plan/v2/ways.hpp>
#include <swapmm/plan/ways.hpp>

#include "command_line.hpp"
#include "files.hpp"
#include "machine_options.hpp"
#include "many_memories.hpp"
#include "output.hpp"
#include "planning.hpp"
#include "printable.hpp"
#include "quantities.hpp"

namespace swapmm::cli {
namespace {

struct PlanOptions {
  CommonOptions common;
  std::string trace;
  MachineOptions machine;
  std::string planner = "best";
  TimeLimit limit;
  Ways ways;
  std::string out;
  std::string changed;
};

void print_plan(const PlanOptions& options, const Trace& trace, const Planned& planned) {
  const Plan& plan = *planned.plan;
  std::cout << printable(trace.name) << ", planned by " << printable(plan.planner) << " for " << describe(plan.machine)
            << "\n\n";
  print_prediction(plan.predicted);
  print_line("host memory", decimal_size(host_bytes(trace, plan)));
  print_line("commands", std::to_string(plan.commands.size()));
  print_line("planned in", text::time_text(planned.took));
  for (const std::string& note : planned.notes) print_line("note", note);
  if (!options.out.empty()) print_line("written to", options.out);
  if (!options.changed.empty()) print_line("changed trace", options.changed);
}

void save_trace(const std::string& path, const Trace& trace) {
  std::ostringstream text;
  write_trace(text, trace);
  save_text(path, text.str());
}

/// The plan, and the program that a compiler would run for it: with ways written out, and moves as operations.
Result<v2::Plan> plan_and_save_changed(const PlanOptions& options, const Trace& trace, const Machine& machine,
                                       Progress& progress) {
  PlanningOptions limits = options_within(options.limit, progress);
  limits.ways = options.ways;
  const Result<PlanWithWays> made = plan_with_ways(trace, machine, limits);
  if (!made) return made.problem();
  const Result<WrittenTrace> written = with_ways(trace, made->ways);
  if (!written) return written.problem();
  save_trace(options.changed, changed_trace(written->trace, made->plan));
  return checked(options.planner, trace, v2::from_ways(trace, *made));
}

/// For a machine with many memories, which has all figures in its file, or a trace of version 2.
ExitCode run_plan_v2(const PlanOptions& options, const Trace& trace, const v2::Machine& machine) {
  const Result<Machine> old = v2::to_version_1(machine);
  const bool changed = !options.changed.empty();
  if (changed && (!old || !trace.engines.empty() || options.planner != "best")) {
    throw Failure(ExitCode::usage,
                  "--changed is for one device and one host, and for traces of version 2 for the planner best");
  }
  check_plans_for_many(options.planner);
  Progress progress(options.common.quiet);
  progress.begin("planning with " + options.planner);
  const Result<v2::Plan> plan =
      changed ? plan_and_save_changed(options, trace, *old, progress)
              : plan_for_many(options.planner, trace, machine, options.limit, options.ways, progress);
  progress.end();
  if (!plan) {
    if (options.common.json) print_json({{"plan", nullptr}, {"problem", json_name(plan.problem().message)}});
    throw Failure(ExitCode::no, "no plan: " + plan.problem().message);
  }
  if (!options.out.empty()) {
    std::ostringstream text;
    v2::write_plan(text, *plan);
    save_text(options.out, text.str());
  }
  if (options.out == "-" || options.changed == "-") return ExitCode::ok;
  if (options.common.json) {
    print_json({{"trace", json_name(trace.name)},
                {"planner", options.planner},
                {"predicted", to_json(*plan)},
                {"ways", to_json(ways_used(trace, *plan))},
                {"commands", plan->commands.size()},
                {"plan", options.out.empty() ? json::value(nullptr) : json::value(json_name(options.out))}});
    return ExitCode::ok;
  }
  std::cout << printable(trace.name) << ", planned by " << options.planner << " for " << printable(machine.name)
            << "\n\n";
  print_prediction(*plan);
  print_ways(trace, *plan);
  print_line("commands", std::to_string(plan->commands.size()));
  if (!options.out.empty()) print_line("written to", options.out);
  if (changed) print_line("changed trace", options.changed);
  return ExitCode::ok;
}

ExitCode run_plan(const PlanOptions& options) {
  const bool to_stdout = options.out == "-" || options.changed == "-";
  check_outputs(options.common.json, {options.out, options.changed}, {options.trace, options.machine.file});
  const std::string text_of_machine = machine_text(options.machine);
  const Trace trace = load_any_trace(options.trace);
  if (is_version_2(text_of_machine) || needs_version_2(trace)) {
    return run_plan_v2(options, trace, machine_for_many(options.machine, trace, text_of_machine, false));
  }
  const Machine machine = make_machine(options.machine, trace, text_of_machine);
  Progress progress(options.common.quiet);
  progress.begin("planning with " + options.planner);
  const Planned planned = run_planner(options.planner, trace, machine, options.limit, progress);
  progress.end();
  if (!planned.plan) {
    if (options.common.json) print_json({{"plan", nullptr}, {"problem", json_name(planned.plan.problem().message)}});
    throw Failure(ExitCode::no, "no plan: " + planned.plan.problem().message);
  }
  if (!options.out.empty()) {
    std::ostringstream text;
    write_plan(text, *planned.plan);
    save_text(options.out, text.str());
  }
  if (!options.changed.empty()) save_trace(options.changed, changed_trace(trace, *planned.plan));
  if (to_stdout) {
    tell_notes(planned.notes);
    return ExitCode::ok;
  }
  if (!options.common.json) {
    print_plan(options, trace, planned);
    return ExitCode::ok;
  }
  json::object answer = plan_as_json(trace, planned, options.planner);
  answer["plan"] = options.out.empty() ? json::value(nullptr) : json::value(json_name(options.out));
  print_json(answer);
  return ExitCode::ok;
}

}  // namespace

void add_plan(CLI::App& program, Chosen& chosen) {
  const auto options = std::make_shared<PlanOptions>();
  CLI::App& command = add_command(program, chosen, "plan", "Make a plan and write it to a file", options, run_plan);
  command.add_option("TRACE", options->trace, "A file of format swapmm-trace")->required()->type_name("");
  command
      .add_option("-o,--out", options->out, "Where the plan goes; \"-\" is stdout, without it there is a summary alone")
      ->type_name("PLAN");
  command
      .add_option("--changed", options->changed,
                  "Where the trace goes that has the plan's moves, and what it does beside them, as operations")
      ->type_name("TRACE");
  add_machine_options(command, options->machine);
  add_planner_options(command, options->planner, options->limit);
  add_ways_option(command, options->ways);
  command.footer(planner_option_help() + "\nExit code 1 where there is no plan.\n");
}

}  // namespace swapmm::cli
