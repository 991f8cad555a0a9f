// SPDX-License-Identifier: Apache-2.0
// swapmm show: pictures of a trace or a plan, and a log as a table or graph.
#include <chrono>
#include <cstdint>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>

#include <swapmm/formats/dot.hpp>
#include <swapmm/formats/profile_svg.hpp>
#include <swapmm/formats/v2/profile_svg.hpp>
#include <swapmm/ir/graph.hpp>
#include <swapmm/ir/liveness.hpp>
#include <swapmm/plan/changed_trace.hpp>
#include <swapmm/plan/predicted_profile.hpp>
#include <swapmm/plan/v2/predicted_profile.hpp>

#include "command_line.hpp"
#include "files.hpp"
#include "output.hpp"
#include "quantities.hpp"
#include "show_log.hpp"

namespace swapmm::cli {
namespace {

struct ShowOptions {
  CommonOptions common;
  std::string file;
  std::string trace;
  std::string svg;
  std::string dot;
  std::uint64_t width = 1200;
  std::uint64_t from = 0;
  std::uint64_t count = 100;
};

/// The operations one after the other, and above them the bytes that must be somewhere while each runs.
Profile profile_of(const Trace& trace) {
  const Liveness liveness = analyze_liveness(trace, Bytes{1});
  Profile profile;
  profile.title = trace.name + ", live bytes";
  profile.device = "memory without a limit";
  std::chrono::nanoseconds time{0};
  for (std::size_t i = 0; i < trace.operations.size(); ++i) {
    const TraceOperation& operation = trace.operations[i];
    if (!profile.levels.empty() && profile.levels.back().time == time) profile.levels.pop_back();
    profile.levels.push_back({time, liveness.live[i]});
    profile.spans.push_back({Lane::compute, operation.name, Bytes{0}, time, time + operation.duration});
    time += operation.duration;
  }
  profile.iteration_ends.push_back(time);
  return profile;
}

void save_svg(const ShowOptions& options, const Profile& profile) {
  std::ostringstream text;
  write_svg(text, profile, {static_cast<int>(options.width), ""});
  save_text(options.svg, text.str());
}

void save_dot(const ShowOptions& options, const Trace& trace) {
  std::ostringstream text;
  write_dot(text, trace, make_graph(trace));
  save_text(options.dot, text.str());
}

void show_trace(const ShowOptions& options, const Trace& trace) {
  if (!options.dot.empty()) save_dot(options, trace);
  if (!options.svg.empty()) save_svg(options, profile_of(trace));
}

/// A plan with many memories.
void show_plan_v2(const ShowOptions& options, const Trace& trace, std::string_view text) {
  if (!options.dot.empty()) throw Failure(ExitCode::usage, options.file + ": --dot is for plans of version 1");
  const v2::Plan plan = valid_plan_v2_from(options.file, text, trace);
  std::ostringstream picture;
  v2::write_svg(picture, v2::predicted_profile(trace, plan), {static_cast<int>(options.width), ""});
  save_text(options.svg, picture.str());
}

void show_plan(const ShowOptions& options, std::string_view text) {
  if (options.trace.empty()) {
    throw Failure(ExitCode::usage, options.file + " is a plan: --trace TRACE is missing");
  }
  const Trace trace = load_any_trace(options.trace);
  if (is_version_2(text) || needs_version_2(trace)) return show_plan_v2(options, trace, text);
  const Plan plan = valid_plan_from(options.file, text, trace);
  if (!options.dot.empty()) save_dot(options, changed_trace(trace, plan));
  if (!options.svg.empty()) save_svg(options, predicted_profile(trace, plan));
}

ExitCode run_show_log(const ShowOptions& options) {
  if (!options.svg.empty() || !options.trace.empty()) {
    throw Failure(ExitCode::usage, options.file + " is a log of calls: it has a table, and a graph by --dot");
  }
  check_outputs(options.common.json, {options.dot}, {options.file});
  show_log(options.file, {options.dot, options.from, options.count, options.common.json});
  return ExitCode::ok;
}

ExitCode run_show(const ShowOptions& options) {
  if (is_log(options.file)) return run_show_log(options);
  if (options.svg.empty() && options.dot.empty()) throw Failure(ExitCode::usage, "--svg FILE or --dot FILE is missing");
  check_outputs(options.common.json, {options.svg, options.dot}, {options.file, options.trace});
  const std::string text = load_text(options.file);
  const Format format = format_of(options.file, text);
  if (format == Format::trace) {
    if (!options.trace.empty()) {
      throw Failure(ExitCode::usage, "--trace belongs to a plan, and " + options.file + " is a trace");
    }
    show_trace(options, trace_from(options.file, text));
  } else {
    show_plan(options, text);
  }
  if (options.common.json) {
    json::object answer;
    answer["format"] = format == Format::trace ? "swapmm-trace" : "swapmm-plan";
    if (!options.svg.empty()) answer["svg"] = json_name(options.svg);
    if (!options.dot.empty()) answer["dot"] = json_name(options.dot);
    print_json(answer);
  }
  return ExitCode::ok;
}

}  // namespace

void add_show(CLI::App& program, Chosen& chosen) {
  const auto options = std::make_shared<ShowOptions>();
  CLI::App& command =
      add_command(program, chosen, "show", "Pictures: memory over time as SVG, graphs as DOT; the calls of a log",
                  options, run_show);
  command.add_option("FILE", options->file, "A trace or a plan (its field \"format\" says which), or a log of calls")
      ->required()
      ->type_name("");
  command.add_option("--trace", options->trace, "The trace of a plan")->type_name("TRACE");
  command.add_option("--svg", options->svg, "Bytes, operations and, of a plan, copies over time, for a browser")
      ->type_name("FILE");
  command
      .add_option("--dot", options->dot,
                  "Operations and values, for Graphviz; of a plan, its moves are operations, too")
      ->type_name("FILE");
  add_parsed(command, "--width", options->width, parse_whole_in<900, 20'000>, "Of the SVG [1200]", "PIXELS");
  add_parsed(command, "--from", options->from, parse_whole_in<0, std::uint64_t{1} << 40U>,
             "Of a log: the first call, with --dot the first command [0]", "NUMBER");
  add_parsed(command, "--count", options->count, parse_whole_in<1, std::uint64_t{1} << 40U>,
             "Of a log: how many calls, with --dot commands [100]", "NUMBER");
}

}  // namespace swapmm::cli
