// SPDX-License-Identifier: Apache-2.0
// swapmm compare: planners side by side, over traces, budgets, bandwidths and speeds of computation.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <swapmm/base/text/figures.hpp>
#include <swapmm/ir/limits.hpp>
#include <swapmm/ir/liveness.hpp>

#include "command_line.hpp"
#include "compare_many.hpp"
#include "comparison.hpp"
#include "files.hpp"
#include "machine_options.hpp"
#include "many_memories.hpp"
#include "output.hpp"
#include "planning.hpp"
#include "printable.hpp"
#include "quantities.hpp"

namespace swapmm::cli {
namespace {

using std::chrono::nanoseconds;

struct CompareOptions {
  CommonOptions common;
  std::vector<std::string> traces;
  MachineOptions machine;
  std::vector<std::string> planners = *parse_planners("all");
  std::vector<Budget> budgets = {{{}, 0.9}, {{}, 0.7}, {{}, 0.5}};
  std::vector<std::uint64_t> bandwidths;
  std::vector<double> compute_scales = {1.0};
  TimeLimit limit;
  Ways ways;
  bool csv = false;
};

Trace with_scaled_compute(const Trace& trace, double scale) {
  Result<Trace> scaled = answers::with_scaled_compute(trace, scale);
  if (!scaled) throw Failure(ExitCode::usage, "--compute-scale: " + scaled.problem().message);
  return *std::move(scaled);
}

std::vector<Machine> machines_for(const CompareOptions& options) {
  std::vector<Machine> machines;
  if (options.bandwidths.empty()) return {make_links(options.machine)};
  for (const std::uint64_t bandwidth : options.bandwidths) {
    MachineOptions one = options.machine;
    one.bandwidth = bandwidth;
    machines.push_back(make_links(one));
  }
  return machines;
}

std::vector<Comparison> compare(const CompareOptions& options) {
  const MachineOptions& links = options.machine;
  if (!options.bandwidths.empty() && (links.bandwidth || links.bandwidth_in || links.bandwidth_out)) {
    throw Failure(ExitCode::usage, "--bandwidths takes the place of --bandwidth, --bandwidth-in and --bandwidth-out");
  }
  std::vector<Trace> traces;  // all are read first: a bad file is told before hours of work
  for (const std::string& path : options.traces) traces.push_back(load_any_trace(path));
  if (std::ranges::any_of(traces, needs_version_2)) {
    for (const std::string& planner : options.planners) check_plans_for_many(planner);
  }
  std::vector<Comparison> rows;
  Progress progress(options.common.quiet);
  const answers::PredictBy predict_by = [&](const std::string& planner, const Trace& trace, const Machine& machine) {
    if (needs_version_2(trace)) {
      return predict_in_version_1(planner, trace, machine, options.limit, options.ways, progress);
    }
    return answers::predicted(run_planner(planner, trace, machine, options.limit, progress));
  };
  for (const Trace& trace : traces) {
    for (const double scale : options.compute_scales) {
      const Trace scaled = with_scaled_compute(trace, scale);
      for (Machine machine : machines_for(options)) {
        const Bytes peak = analyze_liveness(scaled, machine.alignment).peak;
        for (const Budget& budget : options.budgets) {
          set_budget(machine, budget.of(peak));
          compare_planners(options.planners, predict_by, scaled, setting_for(scaled, scale, machine, peak), progress,
                           rows);
        }
      }
    }
  }
  return rows;
}

/// True where for some trace and machine no planner had a plan.
bool anything_misfits(const std::vector<Comparison>& rows, std::size_t planners) {
  for (std::size_t first = 0; first < rows.size(); first += planners) {
    const auto begin = rows.begin() + static_cast<std::ptrdiff_t>(first);
    if (std::none_of(begin, begin + static_cast<std::ptrdiff_t>(planners),
                     [](const Comparison& row) { return row.predicted.has_value(); })) {
      return true;
    }
  }
  return false;
}

ExitCode run_compare(const CompareOptions& options) {
  if (options.csv && options.common.json) throw Failure(ExitCode::usage, "--csv and --json: choose one of them");
  if (!options.machine.file.empty()) {
    const std::string text = machine_text(options.machine);
    const std::string name = "--machine " + printable(options.machine.file) + ": ";
    if (!is_version_2(text)) {
      throw Failure(ExitCode::usage, name +
                                         "a machine of version 1; compare takes one of version 2, or its figures as "
                                         "--budgets, --bandwidths and the other options");
    }
    if (options.csv) throw Failure(ExitCode::usage, name + "--csv is for machines of version 1");
    if (has_figures(options.machine)) {
      throw Failure(ExitCode::usage, name + "a machine of version 2 has its own figures");
    }
    for (const std::string& planner : options.planners) check_plans_for_many(planner);
    return compare_many({options.common.json, options.common.quiet, options.traces, options.machine.file,
                         options.planners, options.limit, options.ways},
                        text);
  }
  const std::vector<Comparison> rows = compare(options);
  if (options.common.json) {
    print_comparison_json(rows);
  } else if (options.csv) {
    print_comparison_csv(rows);
    for (const Comparison& row : rows) tell_notes(row.notes);
  } else {
    print_comparison_table(rows);
  }
  return anything_misfits(rows, options.planners.size()) ? ExitCode::no : ExitCode::ok;
}

}  // namespace

void add_compare(CLI::App& program, Chosen& chosen) {
  const auto options = std::make_shared<CompareOptions>();
  CLI::App& command =
      add_command(program, chosen, "compare", "Planners side by side: time, fraction of ideal, gap to the bound, bytes",
                  options, run_compare);
  command.add_option("TRACE", options->traces, "Files of format swapmm-trace")->required()->type_name("");
  CLI::Option* const machine =
      command
          .add_option(
              "--machine", options->machine.file,
              "A file of format swapmm-machine, version 2, or a name that `swapmm machines` lists; in the place of\n"
              "budgets and bandwidths")
          ->type_name("FILE");
  add_parsed(command, "--planners", options->planners, parse_planners,
             "\"all\", or names between commas; plan --help has them, and the options of ilp [all]", "NAMES");
  add_list(command, "--budgets", options->budgets, parse_budget,
           "Sizes or shares of each trace's peak of live bytes, between commas [0.9,0.7,0.5]", "SIZES");
  add_list(command, "--bandwidths", options->bandwidths, parse_bandwidth, "Between commas: 12GB/s,25GB/s", "RATES");
  add_list(command, "--compute-scale", options->compute_scales, parse_factor,
           "Factors on the durations of operations: 1,1/5,1/20 [1]", "FACTORS");
  for (const char* const other : {"--budgets", "--bandwidths", "--compute-scale"})
    machine->excludes(command.get_option(other));
  add_link_options(command, options->machine);
  add_parsed(command, "--time-limit", options->limit, parse_time_limit, "Search so long for each plan: 10s", "TIME");
  add_ways_option(command, options->ways);
  command.add_flag("--csv", options->csv, "Comma-separated, a line for each plan");
  command.footer(
      "Fraction of ideal: computation / iteration. Gap: iteration / the best lower bound of any planner here, less 1.\n"
      "A planner without a plan has its reason in the place of figures. Exit code 1 where no planner had a plan for\n"
      "some trace and machine.\n");
}

}  // namespace swapmm::cli
