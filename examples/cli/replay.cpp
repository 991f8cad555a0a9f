// SPDX-License-Identifier: Apache-2.0
// swapmm replay: a recorded run again, natively or within a budget.
#include <sys/wait.h>

#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <system_error>

#include "command_line.hpp"
#include "files.hpp"
#include "layered_run.hpp"
#include "output.hpp"
#include "printable.hpp"
#include "replayer.hpp"

namespace swapmm::cli {
namespace {

struct ReplayOptions {
  CommonOptions common;
  RunOptions run;
  std::string log;
  std::uint64_t seed = 1;
};

#ifdef SWAPMM_CLI_HAS_OPENCL

json::object answer_of(const Replayed& replayed, bool has_inputs) {
  json::object skipped;
  for (const auto& [why, count] : replayed.skipped) skipped[why] = count;
  json::array different;
  for (const std::string& each : replayed.different) different.emplace_back(each);
  json::array failed;
  for (const std::string& each : replayed.failed) failed.emplace_back(each);
  json::object answer;
  answer["device"] = json_name(replayed.device);
  answer["calls"] = replayed.calls;
  answer["skipped"] = skipped;
  answer["recorded_inputs"] = has_inputs;
  answer["compared"] = replayed.compared;
  answer["different"] = different;
  answer["failed"] = failed;
  answer["digest"] = replayed.digest;
  return answer;
}

void print_first(const char* title, const std::vector<std::string>& lines) {
  for (std::size_t i = 0; i < lines.size() && i < 10; ++i) print_line(i == 0 ? title : "", lines[i]);
  if (lines.size() > 10) print_line("", "and " + std::to_string(lines.size() - 10) + " more");
}

ExitCode replay_here(const ReplayOptions& options) {
  const calls::CallLog log = load_log(options.log, true);
  (void)run_from(options.log, log);  // a call that is not possible is a bad file
  const Replayed replayed = replay(log, options.seed);
  if (options.common.json) {
    print_json(answer_of(replayed, log.has_content));
  } else {
    print_line("device", printable(replayed.device));
    print_line("repeated", std::to_string(replayed.calls) + " of " + std::to_string(log.calls.size()) + " calls");
    for (const auto& [why, count] : replayed.skipped)
      print_line("skipped", std::to_string(count) + " " + printable(why));
    if (log.has_content) {
      print_line("compared", std::to_string(replayed.compared) + " values that the host read; " +
                                 std::to_string(replayed.different.size()) + " are different");
    } else {
      print_line("inputs", "from seed " + std::to_string(options.seed) + ": the log has none, so nothing is compared");
    }
    print_first("different", replayed.different);
    print_first("fails", replayed.failed);
    print_line("digest", replayed.digest);
  }
  return replayed.different.empty() && replayed.failed.empty() ? ExitCode::ok : ExitCode::no;
}

// Within a budget: this command again, as a program with the layer.
ExitCode replay_layered(const ReplayOptions& options) {
  RunOptions run = options.run;
  run.words = {"/proc/self/exe", "replay", "--seed", std::to_string(options.seed), options.log};
  std::error_code unknown;
  const std::string self = std::filesystem::read_symlink("/proc/self/exe", unknown).string();
  if (!unknown) run.words.front() = self;
  if (options.common.json) run.words.insert(run.words.begin() + 2, "--json");
  return static_cast<ExitCode>(end_like(run_layered("replay", run, {}).status));
}

#endif

ExitCode run_replay(const ReplayOptions& options) {
#ifdef SWAPMM_CLI_HAS_OPENCL
  const bool layered = options.run.budget || options.run.evict_always;
  if (layered && options.log == "-") {
    throw Failure(ExitCode::usage,
                  "with --budget or --evict-always the log must be a file: a program of its own reads it");
  }
  if (!is_log(options.log)) throw Failure(ExitCode::bad_file, options.log + ": not a swapmm-log");
  return layered ? replay_layered(options) : replay_here(options);
#else
  throw Failure(ExitCode::usage, options.log + ": this command was built without OpenCL, so it cannot repeat calls");
#endif
}

// Without the layer they would mean nothing.
void refuse_layer_options(const CLI::App& command, const ReplayOptions& options) {
  if (options.run.budget || options.run.evict_always) return;
  for (const char* const name :
       {"--host-budget", "--file", "--file-size", "--reported-memory", "--keep", "--wait", "--report", "--layer"}) {
    if (command.count(name) != 0) {
      throw Failure(ExitCode::usage, std::string(name) + " is for the layer: it needs --budget or --evict-always");
    }
  }
}

}  // namespace

void add_replay(CLI::App& program, Chosen& chosen) {
  const auto options = std::make_shared<ReplayOptions>();
  CLI::App* const command =
      program.add_subcommand("replay", "Repeat the calls of a log, and compare what the host reads");
  command->add_option("LOG", options->log, "A log of `swapmm record --log` or SWAPMM_LOG")->required()->type_name("");
  command->add_flag("--json", options->common.json, "Print the answer as one JSON text");
  add_parsed(*command, "--seed", options->seed, parse_whole_in<0, std::uint64_t{1} << 62U>,
             "For inputs that are not in the log [1]", "NUMBER");
  add_run_options(*command, options->run);
  command->footer(
      "Without --budget and --evict-always the calls go to the driver, without the layer.\n"
      "Exit code 1: the host read other bytes than recorded, or a call fails that did not.\n");
  command->callback([&chosen, options, command] {
    chosen.run = [options, command] {
      refuse_layer_options(*command, *options);
      return run_replay(*options);
    };
  });
}

}  // namespace swapmm::cli
