// SPDX-License-Identifier: Apache-2.0
// swapmm record: the log of an unmodified OpenCL program, and its busiest repeated sequence as a trace.
#include <unistd.h>

#include <filesystem>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>

#include <sys/wait.h>

#include <swapmm/formats/trace_json.hpp>
#include <swapmm/ir/calls/iteration.hpp>

#include "command_line.hpp"
#include "files.hpp"
#include "layered_run.hpp"
#include "output.hpp"
#include "printable.hpp"

namespace swapmm::cli {
namespace {

namespace fs = std::filesystem;

struct RecordOptions {
  RunOptions run;
  std::string out;
  std::string log;
  bool data = false;
};

/// A folder for the logs of all processes, which only the user may read.
class LogFolder {
 public:
  LogFolder() {
    std::error_code unknown;
    std::string pattern = (fs::temp_directory_path(unknown) / "swapmm-record-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) throw Failure(ExitCode::io, pattern + ": cannot be created");
    path_ = pattern;
  }
  LogFolder(const LogFolder&) = delete;
  LogFolder& operator=(const LogFolder&) = delete;
  ~LogFolder() {
    std::error_code unknown;
    fs::remove_all(path_, unknown);
  }
  [[nodiscard]] std::string pattern() const { return (path_ / "%p.log").string(); }
  /// The log of the process that called most, if there is one.
  [[nodiscard]] fs::path largest(std::size_t& count) const {
    fs::path best;
    std::uintmax_t size = 0;
    std::error_code unknown;
    for (const auto& entry : fs::directory_iterator(path_, unknown)) {
      ++count;
      const std::uintmax_t bytes = entry.file_size(unknown);
      if (!best.empty() && bytes <= size) continue;
      best = entry.path();
      size = bytes;
    }
    return best;
  }

 private:
  fs::path path_;
};

void tell(const std::string& line) { std::cerr << "swapmm record: " << printable(line) << '\n'; }

std::string count_of(std::size_t count, const std::string& thing) {
  return std::to_string(count) + " " + thing + (count == 1 ? "" : "s");
}

void keep_log(const fs::path& from, const std::string& to) {
  std::error_code failed;
  fs::copy_file(from, to, fs::copy_options::overwrite_existing, failed);
  if (failed) throw Failure(ExitCode::io, to + ": cannot be written: " + failed.message());
  fs::permissions(to, fs::perms::owner_read | fs::perms::owner_write, failed);
}

/// False if nothing repeats.
bool save_trace(const RecordOptions& options, const fs::path& file) {
  const calls::CallLog log = load_log(file.string(), false);
  if (log.incomplete_bytes != 0 || !log.ended) tell("the log ends before the program did; what is there was used");
  const calls::Run run = run_from(file.string(), log);
  const std::string name = fs::path(options.run.words.front()).filename().string();
  const Result<calls::RecordedIteration> found = calls::recorded_iteration(log, run, name);
  if (!found) {
    tell("no trace: " + found.problem().message);
    return false;
  }
  std::ostringstream text;
  write_trace(text, found->trace);
  save_text(options.out, text.str());
  tell(count_of(log.calls.size(), "call") + ", " + count_of(run.operations.size(), "command") + "; a sequence of " +
       std::to_string(found->operations) + " repeats " + std::to_string(found->repetitions) + " times and covers " +
       std::to_string(100 * found->covered / run.operations.size()) + " % of the commands");
  tell(options.out + ": " + count_of(found->trace.operations.size(), "operation") + ", " +
       count_of(found->trace.tensors.size(), "tensor") + ", " + count_of(found->trace.host_reads.size(), "host read"));
  for (const std::string& note : found->notes) tell("not in the trace: " + note);
  return true;
}

ExitCode run_record(const RecordOptions& options) {
  if (options.out.empty() && options.log.empty()) {
    throw Failure(ExitCode::usage, "--out TRACE or --log FILE is missing");
  }
  if (options.data && options.log.empty()) throw Failure(ExitCode::usage, "--data belongs to --log FILE");
  check_outputs(false, {options.out, options.log, options.run.report}, {});
  if (options.log == "-") throw Failure(ExitCode::usage, "--log: stdout is the program's");
  for (const std::string& file : {options.out, options.log}) {
    if (!file.empty() && file != "-") check_can_be_written(file);
  }
  const LogFolder folder;
  Variables variables;
  variables["SWAPMM_LOG"] = folder.pattern();
  variables["SWAPMM_LOG_DATA"] = options.data ? "1" : "0";
  const LayeredRun ended = run_layered("record", options.run, variables);
  std::size_t count = 0;
  const fs::path file = folder.largest(count);
  bool has_trace = options.out.empty();
  if (file.empty()) {
    if (ended.layer_was_loaded) tell("no log: the program made no OpenCL call");
  } else {
    if (count > 1) tell(std::to_string(count) + " processes wrote a log; that of the largest is used");
    if (!options.log.empty()) keep_log(file, options.log);
    if (!options.out.empty()) has_trace = save_trace(options, file);
  }
  const int code = WIFEXITED(ended.status) ? WEXITSTATUS(ended.status) : 128 + WTERMSIG(ended.status);
  if (code != 0) {
    tell("the program ended with " + std::to_string(code));
    return static_cast<ExitCode>(code);
  }
  return has_trace && !file.empty() ? ExitCode::ok : ExitCode::no;
}

}  // namespace

void add_record(CLI::App& program, Chosen& chosen) {
  const auto options = std::make_shared<RecordOptions>();
  CLI::App* const command =
      program.add_subcommand("record", "Run an unmodified OpenCL program, and record its busiest iteration as a trace");
  command->add_option("--out", options->out, "Write the trace here, for fit, plan and compare")->type_name("TRACE");
  command->add_option("--log", options->log, "Write the log of all calls here, for show and replay")->type_name("FILE");
  command->add_flag("--data", options->data, "The log has the bytes that the program gives to the device, for replay");
  add_run_options(*command, options->run);
  command->footer(
      "swapmm record --out TRACE [OPTIONS] -- PROGRAM [ARGUMENTS]: the program's words follow \"--\".\n"
      "The program's exit code is the command's. Code 1: nothing repeats, or nothing was recorded. Codes 2 and 4: the "
      "program was not started.\n");
  command->prefix_command();
  command->callback([&chosen, options, command] {
    take_words(*command, chosen, options->run);
    chosen.run = [options] { return run_record(*options); };
  });
}

}  // namespace swapmm::cli
