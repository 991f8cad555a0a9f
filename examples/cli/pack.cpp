// SPDX-License-Identifier: Apache-2.0
// swapmm pack: places for buffers with lifetimes.
#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <swapmm/base/text/figures.hpp>
#include <swapmm/ir/limits.hpp>
#include <swapmm/plan/packing.hpp>

#include "buffers.hpp"
#include "command_line.hpp"
#include "files.hpp"
#include "output.hpp"
#include "progress.hpp"
#include "quantities.hpp"

namespace swapmm::cli {
namespace {

using Clock = std::chrono::steady_clock;

Result<Bytes> parse_alignment(std::string_view text) {
  Result<Bytes> size = parse_size(text);
  if (size && (size->value == 0 || size->value > limits::alignment_bytes)) {
    return Problem{"\"" + std::string(text) + "\" is not from 1 to 2^40 bytes"};
  }
  return size;
}

struct PackOptions {
  CommonOptions common;
  std::string csv;
  std::optional<Bytes> capacity;
  Bytes alignment{1};
  std::optional<std::chrono::nanoseconds> limit;
  std::string out;
};

/// Within the capacity asked for, if that can be; else as low as possible. With a limit the search goes on until it is
/// over, or nothing is left to gain.
Packing pack_in_time(const PackingProblem& problem, Bytes load, const PackOptions& options, Progress& progress) {
  const Clock::time_point start = Clock::now();
  const std::function<bool()> go_on = [&] {
    const std::chrono::nanoseconds passed = Clock::now() - start;
    progress.detail(text::time_text(passed));
    return passed < *options.limit;
  };
  PackingEffort effort;
  if (options.limit) effort.go_on = &go_on;
  progress.begin("packing");
  const bool may_fit = options.capacity && *options.capacity >= load;
  Result<Packing> packing = may_fit ? pack_towards(problem, effort) : pack_lowest(problem, effort);
  if (!packing) throw Failure(ExitCode::no, packing.problem().message);
  return *std::move(packing);
}

ExitCode run_pack(const PackOptions& options) {
  check_outputs(options.common.json, {options.out}, {options.csv});
  const std::string text = load_text(options.csv);
  if (text.size() > limits::file_bytes) throw Failure(ExitCode::bad_file, options.csv + ": above 256 MiB");
  const auto buffers = read_buffers(text);
  if (!buffers) throw Failure(ExitCode::bad_file, options.csv + ": " + buffers.problem().message);
  Result<PackingProblem> problem = packing_problem_of(*buffers, options.alignment);
  if (!problem) throw Failure(ExitCode::bad_file, options.csv + ": " + problem.problem().message);
  const Bytes load = packing_load(*problem);
  if (options.capacity) problem->capacity = *options.capacity;

  const Clock::time_point start = Clock::now();
  Progress progress(options.common.quiet);
  const Packing packing = pack_in_time(*problem, load, options, progress);
  progress.end();
  const std::chrono::nanoseconds took = Clock::now() - start;
  const bool fits = !options.capacity || packing.height <= *options.capacity;
  const bool saved = fits && !options.out.empty();
  if (saved) save_text(options.out, buffers_with_offsets(*buffers, packing.offsets));

  if (options.common.json) {
    json::object answer;
    answer["buffers"] = buffers->size();
    answer["load_bytes"] = load.value;
    answer["height_bytes"] = packing.height.value;
    answer["capacity_bytes"] = options.capacity ? json::value(options.capacity->value) : nullptr;
    answer["fits"] = fits;
    answer["time_ns"] = took.count();
    answer["out"] = saved ? json::value(json_name(options.out)) : nullptr;
    print_json(answer);
  } else if (options.out != "-") {
    std::optional<double> above;  // none: nothing takes bytes
    if (load.value != 0) above = static_cast<double>(packing.height.value) / static_cast<double>(load.value);
    print_line("buffers", std::to_string(buffers->size()));
    print_line("load", std::to_string(load.value) + " bytes at one time: no packing is lower");
    print_line("height", std::to_string(packing.height.value) + " bytes, " + ratio_text(above) + " x the load");
    if (options.capacity) {
      print_line("capacity", std::to_string(options.capacity->value) + " bytes: " +
                                 (fits                       ? "fits"
                                  : load > *options.capacity ? "cannot fit"
                                                             : "no packing found"));
    }
    print_line("time", text::time_text(took));
    if (saved) print_line("written to", options.out);
  }
  if (!fits && options.out == "-") throw Failure(ExitCode::no, "no packing within the capacity was found");
  return fits ? ExitCode::ok : ExitCode::no;
}

}  // namespace

void add_pack(CLI::App& program, Chosen& chosen) {
  const auto options = std::make_shared<PackOptions>();
  CLI::App& command = add_command(program, chosen, "pack", "Offsets for buffers with lifetimes, in MiniMalloc's format",
                                  options, run_pack);
  command
      .add_option("CSV", options->csv, "Columns id,lower,upper,size: size bytes from lower up to, not including, upper")
      ->required()
      ->type_name("");
  add_parsed(command, "--capacity", options->capacity, parse_size,
             "End as soon as everything lies below it; without it, as low as can be found", "SIZE");
  add_parsed(command, "--alignment", options->alignment, parse_alignment, "Offsets are multiples of it [1]", "SIZE");
  add_parsed(command, "--time-limit", options->limit, parse_time_limit,
             "Search for so long, unless nothing is left to gain: 60s; without it, a set number of steps", "TIME");
  command.add_option("-o,--out", options->out, "The same with a column offset; \"-\" is stdout")->type_name("CSV");
  command.footer("Exit code 1 where nothing within the capacity was found; then no file is written.\n");
}

}  // namespace swapmm::cli
