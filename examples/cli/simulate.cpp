// SPDX-License-Identifier: Apache-2.0
// swapmm simulate: the steady state of a plan, also where durations and the link are not what it was made for.
#include <array>
#include <cmath>
#include <iostream>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include <swapmm/answers/simulation.hpp>
#include <swapmm/base/text/figures.hpp>
#include <swapmm/formats/profile_events.hpp>
#include <swapmm/formats/v2/profile_events.hpp>
#include <swapmm/ir/limits.hpp>
#include <swapmm/plan/predicted_profile.hpp>
#include <swapmm/plan/simulate.hpp>
#include <swapmm/plan/v2/predicted_profile.hpp>
#include <swapmm/plan/v2/simulate.hpp>

#include "command_line.hpp"
#include "files.hpp"
#include "machine_options.hpp"
#include "many_memories.hpp"
#include "output.hpp"
#include "printable.hpp"
#include "progress.hpp"
#include "quantities.hpp"

namespace swapmm::cli {
namespace {

struct SimulateOptions {
  CommonOptions common;
  std::string trace;
  std::string plan;
  Disturbance disturbance;
  std::string trace_out;
};

using std::chrono::nanoseconds;

std::string points(std::optional<double> share) {
  return share ? text::fixed_point(std::llround(*share * 10000), 100, 2) + " points" : "n/a";
}

void print_summary(const Summary& summary, const SimulateOptions& options) {
  std::string what;
  if (options.disturbance.noise > 0) what = "every duration off by up to " + percent(options.disturbance.noise);
  if (options.disturbance.slow_link) {
    what += (what.empty() ? "" : ", ") + std::string("the link at ") + percent(options.disturbance.slow_link->speed) +
            " of its speed for " + percent(options.disturbance.slow_link->part) + " of the iteration";
  }
  std::cout << '\n' << what << "; " << options.disturbance.draws << " draws\n";
  print_line("mean", text::time_text(summary.mean) + ", " + points(summary.mean_lost) + " lost");
  print_line("worst", text::time_text(summary.worst) + ", " + points(summary.worst_lost) + " lost");
}

void print_iteration(nanoseconds compute, nanoseconds iteration) {
  print_line("computation", text::time_text(compute));
  const std::optional<double> of_ideal = fraction_of_ideal(compute, iteration);
  print_line("iteration", text::time_text(iteration) + ", " + percent(of_ideal) + " of ideal" +
                              (of_ideal ? "" : " (n/a: " + std::string(no_computation) + ")"));
}

void save_trace_events(const SimulateOptions& options, const Trace& trace, const Plan& plan) {
  std::ostringstream text;
  const std::array profiles{predicted_profile(trace, plan)};
  write_trace_events(text, profiles);
  save_text(options.trace_out, text.str());
}

/// For a plan with many memories.
ExitCode run_simulate_v2(const SimulateOptions& options, const Trace& trace, std::string_view plan_text) {
  if (options.disturbance.noise > 0 || options.disturbance.slow_link) {
    throw Failure(ExitCode::usage, options.plan + ": --noise and --slow-link are for plans of version 1");
  }
  v2::Plan plan = valid_plan_v2_from(options.plan, plan_text, trace);
  const v2::Simulation simulation = v2::simulate(trace, plan);
  plan.predicted = {simulation.iteration, simulation.compute, simulation.compute, simulation.links, simulation.peaks};
  if (!options.trace_out.empty()) {
    std::ostringstream text;
    const std::array profiles{v2::predicted_profile(trace, plan)};
    v2::write_trace_events(text, profiles);
    save_text(options.trace_out, text.str());
  }
  if (options.common.json) {
    json::object answer = cli::to_json(plan);
    answer.erase("lower_bound_ns");
    answer["trace"] = json_name(trace.name);
    answer["planner"] = json_name(plan.planner);
    if (!options.trace_out.empty()) answer["trace_out"] = json_name(options.trace_out);
    print_json(answer);
    return ExitCode::ok;
  }
  print_title(trace, plan);
  print_iteration(simulation.compute, simulation.iteration);
  print_links_and_memories(plan);
  return ExitCode::ok;
}

ExitCode run_simulate(const SimulateOptions& options) {
  if (options.trace_out == "-") throw Failure(ExitCode::usage, "--trace-out: stdout has the answer already");
  const Trace trace = load_any_trace(options.trace);
  const std::string text = load_text(options.plan);
  if (is_version_2(text) || needs_version_2(trace)) return run_simulate_v2(options, trace, text);
  const Plan plan = valid_plan_from(options.plan, text, trace);
  const Simulation calm = simulate(trace, plan);
  Progress progress(options.common.quiet);
  const std::vector<Draw> draws = disturbed(options.disturbance, trace, plan, calm, progress);
  progress.end();
  if (!options.trace_out.empty()) save_trace_events(options, trace, plan);

  if (options.common.json) {
    json::object answer = simulation_as_json(trace, plan, calm, options.disturbance, draws);
    if (!options.trace_out.empty()) answer["trace_out"] = json_name(options.trace_out);
    print_json(answer);
    return ExitCode::ok;
  }
  std::cout << printable(trace.name) << ", planned by " << printable(plan.planner) << " for " << describe(plan.machine)
            << "\n\n";
  print_iteration(calm.compute, calm.iteration);
  print_line("copies", decimal_size(calm.h2d) + " in, " + decimal_size(calm.d2h) + " out an iteration");
  print_line("device memory used", decimal_size(calm.peak));
  if (!draws.empty()) print_summary(summarize(draws, calm), options);
  return ExitCode::ok;
}

}  // namespace

void add_simulate(CLI::App& program, Chosen& chosen) {
  const auto options = std::make_shared<SimulateOptions>();
  CLI::App& command =
      add_command(program, chosen, "simulate",
                  "The time of a plan's iteration in the steady state, and when things vary", options, run_simulate);
  command.add_option("TRACE", options->trace, "A file of format swapmm-trace")->required()->type_name("");
  command.add_option("PLAN", options->plan, "A file of format swapmm-plan, valid for the trace")
      ->required()
      ->type_name("");
  add_parsed(command, "--noise", options->disturbance.noise, parse_noise,
             "Each operation and each copy takes up to so much more or less: 25%", "SHARE");
  add_parsed(command, "--slow-link", options->disturbance.slow_link, parse_slow_link,
             "50%@20%: the link has half its speed for a fifth of the iteration", "SPEED@PART");
  add_parsed(command, "--seed", options->disturbance.seed, parse_whole_in<0, limits::magnitude - 1>, "Of the noise [1]",
             "N");
  add_parsed(command, "--draws", options->disturbance.draws, parse_whole_in<1, 100'000>, "So many [16]", "N");
  command
      .add_option("--trace-out", options->trace_out,
                  "The undisturbed iteration as trace events, for ui.perfetto.dev or chrome://tracing")
      ->type_name("FILE");
  command.footer(
      "The simulator follows the timing rules of docs/formats.md exactly. In a draw of --noise each operation and "
      "each\n"
      "copy gets a factor of its own, evenly spread and the same in all iterations of the draw. With --slow-link, "
      "what\n"
      "of a copy ran in the slow part of the undisturbed iteration takes 1/SPEED times as long, in both directions; "
      "the\n"
      "slow part begins elsewhere in each draw, evenly spread over the iteration. Lost points: by how much the share "
      "of\n"
      "the computation in the iteration is lower than without disturbance.\n");
}

}  // namespace swapmm::cli
