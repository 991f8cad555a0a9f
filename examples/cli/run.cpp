// SPDX-License-Identifier: Apache-2.0
// swapmm run: an unmodified OpenCL program within a device budget.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <swapmm/formats/quantity.hpp>

#include "child.hpp"
#include "command_line.hpp"
#include "files.hpp"
#include "layered_reports.hpp"
#include "layered_run.hpp"
#include "printable.hpp"
#include "process/seconds.hpp"
#include "program_file.hpp"

#ifdef SWAPMM_CLI_HAS_OPENCL
#include <swapmm/opencl/devices.hpp>
#endif

namespace swapmm::cli {
namespace {

namespace fs = std::filesystem;

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

[[noreturn]] void refuse(const std::string& message) { throw Failure(ExitCode::usage, message); }

// ---- the layer

// Beside this command, as it is installed or as it is built.
std::string own_layer() {
  std::error_code unknown;
  const fs::path here = fs::read_symlink("/proc/self/exe", unknown).parent_path();
  std::string looked;
  for (const char* const place : {SWAPMM_CLI_LAYER_INSTALLED, SWAPMM_CLI_LAYER_BUILT}) {
    const fs::path file = (here / place / "libswapmm_opencl_layer.so").lexically_normal();
    if (fs::exists(file, unknown)) return file.string();
    looked += (looked.empty() ? "" : ", ") + file.string();
  }
  refuse("the layer is not there: " + looked + "; --layer names another file");
}

// The last one in the list is called first: it is nearest to the program.
std::string layers_with(const std::string& layer) {
  const std::string others = variable("OPENCL_LAYERS");
  return others.empty() ? layer : others + ":" + layer;
}

// ---- the budget

constexpr const char* examples = "a budget is written 8GB, 512MiB, or as a share of the memory 25% or 0.25";

quantity::Budget checked_budget(const std::string& name, const std::string& text) {
  const Result<quantity::Budget> budget = quantity::parse_budget(text, examples);
  if (!budget) refuse(name + ": " + budget.problem().message);
  if (budget->share && *budget->share > 1) refuse(name + " " + text + ": more than there is");
  return *budget;
}

// A budget that is above the memory of every device is a mistake: the layer would refuse every allocation.
void check_against_devices(const std::string& name, const quantity::Budget& budget) {
#ifdef SWAPMM_CLI_HAS_OPENCL
  if (budget.share) return;
  Bytes largest;
  try {
    for (const opencl::Device& device : opencl::devices()) largest = std::max(largest, device.memory);
  } catch (const std::exception&) {
    return;  // the program will meet the same
  }
  if (largest.value != 0 && budget.bytes > largest) {
    refuse(name + " is " + std::to_string(budget.bytes.value) + " bytes, and the largest OpenCL device has " +
           std::to_string(largest.value));
  }
#else
  (void)name;
  (void)budget;
#endif
}

// The option, or else the variable that the layer would read.
std::optional<std::pair<std::string, std::string>> chosen(const std::optional<std::string>& option, const char* name,
                                                          const char* variable_name) {
  if (option) return std::pair{std::string(name), *option};
  if (const std::string set = variable(variable_name); !set.empty()) return std::pair{std::string(variable_name), set};
  return {};
}

// ---- files that the program's process writes

void check_folder(const std::string& name, const fs::path& file) {
  std::error_code unknown;
  const std::string folder = file.parent_path().string();
  if (!fs::is_directory(folder, unknown)) refuse(name + ": there is no folder " + folder);
  if (fs::is_directory(file, unknown)) refuse(name + ": " + file.string() + " is a folder");
}

void check_place(const std::string& name, const fs::path& file) {
  check_folder(name, file);
  std::error_code unknown;
  const std::string folder = file.parent_path().string();
  const bool there = fs::exists(file, unknown);
  if (there && !fs::is_regular_file(file, unknown)) refuse(name + ": " + file.string() + " is not an ordinary file");
  if (access(there ? file.c_str() : folder.c_str(), W_OK) != 0)
    refuse(name + ": " + file.string() + " cannot be written");
}

// The whole name, for the program may go elsewhere. Empty: no such file is wanted.
std::string checked_file(const std::string& option, const char* name, const char* variable_name) {
  const auto file = chosen(option.empty() ? std::nullopt : std::optional(option), name, variable_name);
  if (!file) return "";
  if (file->second == "-") refuse(file->first + ": stdout is the program's");
  const fs::path whole = fs::absolute(file->second);
  check_place(file->first, whole);
  return whole.string();
}

// What can be known before the program runs, for then it would be too late.
void check_report(const RunOptions& options) {
  if (options.report.empty() || options.report == "text" || options.report == "json") return;
  if (options.report == "-") refuse("--report: stdout is the program's");
  check_folder("--report", fs::absolute(options.report));
}

// ---- whether the layer was loaded

/// A folder with a file to which each process that loads the layer adds a line, and what they keep for their reports.
class Started {
 public:
  Started() {
    std::error_code unknown;
    std::string pattern = (fs::temp_directory_path(unknown) / "swapmm-run-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) throw Failure(ExitCode::io, pattern + ": cannot be created");
    folder_ = pattern;
    fs::create_directory(reports(), unknown);
  }
  Started(const Started&) = delete;
  Started& operator=(const Started&) = delete;
  ~Started() {
    std::error_code unknown;
    fs::remove_all(folder_, unknown);
  }
  [[nodiscard]] std::string path() const { return folder_ + "/started"; }
  [[nodiscard]] std::string reports() const { return folder_ + "/reports"; }
  [[nodiscard]] bool any() const {
    std::error_code unknown;
    const auto size = fs::file_size(path(), unknown);
    return !unknown && size != 0;
  }

 private:
  std::string folder_;
};

// As SWAPMM_REPORT has it; empty: no report. A relative name is one from here, wherever the program goes.
std::string where_to_report(const RunOptions& options) {
  if (options.json) return "json";
  if (options.report == "text" || options.report == "json") return options.report;
  if (!options.report.empty()) return fs::absolute(options.report).string();
  if (const std::string set = variable("SWAPMM_REPORT"); !set.empty()) return set;
  return options.quiet ? "" : "text";
}

/// What shows how the program runs, beside the report.
Variables pictures(const RunOptions& options) {
  Variables all;
  const std::string trace = checked_file(options.trace_out, "--trace-out", "SWAPMM_TRACE_OUT");
  if (!trace.empty()) all["SWAPMM_TRACE_OUT"] = trace;
  const std::string svg = checked_file(options.svg, "--svg", "SWAPMM_SVG");
  if (!svg.empty()) all["SWAPMM_SVG"] = svg;
  if (const auto seconds = chosen(options.progress.empty() ? std::nullopt : std::optional(options.progress),
                                  "--progress", "SWAPMM_PROGRESS")) {
    if (!opencl::layer::seconds_of(seconds->second)) {
      refuse(seconds->first + ": \"" + seconds->second + "\" is not a number of seconds");
    }
    all["SWAPMM_PROGRESS"] = seconds->second;
  }
  return all;
}

Variables settings(const RunOptions& options, const std::string& layer, const Started& started, Variables all) {
  all["OPENCL_LAYERS"] = layers_with(layer);
  all["SWAPMM_STARTED"] = started.path();
  if (options.budget) all["SWAPMM_BUDGET"] = *options.budget;
  if (options.host_budget) all["SWAPMM_HOST_BUDGET"] = *options.host_budget;
  if (options.file) all["SWAPMM_FILE"] = *options.file;
  if (options.file_size) all["SWAPMM_FILE_SIZE"] = *options.file_size;
  if (options.reported_memory) all["SWAPMM_REPORTED_MEMORY"] = *options.reported_memory;
  if (!options.keep.empty()) all["SWAPMM_KEEP"] = options.keep;
  if (options.wait) all["SWAPMM_WAIT"] = *options.wait;
  if (options.evict_always) all["SWAPMM_EVICT"] = "always";
  if (options.quiet) all["SWAPMM_QUIET"] = "1";
  all["SWAPMM_REPORT"] = where_to_report(options);
  all["SWAPMM_REPORT_FOLDER"] = started.reports();
  return all;
}

ExitCode run_run(const RunOptions& options) {
  return static_cast<ExitCode>(end_like(run_layered("run", options, {}).status));
}

}  // namespace

LayeredRun run_layered(const std::string& command, const RunOptions& options, const Variables& more) {
  const std::vector<std::string>& words = options.words;
  const HeldSignals signals;
  check_outputs(false, {options.report, options.trace_out, options.svg}, {});
  check_report(options);
  if (words.empty()) refuse("which program? swapmm " + command + " --budget 25% -- program arguments");
  if (const std::string off = variable("SWAPMM_DISABLE"); !off.empty() && off != "0") {
    refuse("SWAPMM_DISABLE is set: the layer would do nothing");
  }
  if (const auto budget = chosen(options.budget, "--budget", "SWAPMM_BUDGET")) {
    check_against_devices(budget->first, checked_budget(budget->first, budget->second));
  }
  if (const auto budget = chosen(options.host_budget, "--host-budget", "SWAPMM_HOST_BUDGET")) {
    (void)checked_budget(budget->first, budget->second);
  }
  const auto folder = chosen(options.file, "--file", "SWAPMM_FILE");
  if (const auto size = chosen(options.file_size, "--file-size", "SWAPMM_FILE_SIZE")) {
    (void)checked_budget(size->first, size->second);
    if (!folder || folder->second.empty()) refuse(size->first + " needs --file or SWAPMM_FILE: the folder of the file");
  }
  if (folder && !folder->second.empty()) {
    std::error_code ignored;
    if (!std::filesystem::is_directory(folder->second, ignored)) {
      refuse(folder->first + ": there is no folder \"" + folder->second + "\"");
    }
  }
  const std::string file = find_program(words.front());
  check_program(file);
  const std::string layer = options.layer.empty() ? own_layer() : fs::absolute(options.layer).string();
  if (layer.find(':') != std::string::npos) {
    refuse("the layer " + layer + ": OPENCL_LAYERS cannot hold a name with a colon");
  }
  check_layer(layer);
  Variables variables = pictures(options);
  variables.insert(more.begin(), more.end());

  LayeredRun result;
  {
    const Started started;
    result.status = run_child(file, words, settings(options, layer, started, variables), signals);
    result.layer_was_loaded = started.any();
    write_layered_reports(started.reports(), where_to_report(options));
    if (!result.layer_was_loaded) {
      std::cerr << "swapmm " << command << ": " << printable(words.front())
                << " did not load the layer: no OpenCL call went through a loader that has layers, and nothing was "
                   "limited\n";
    }
  }
  return result;
}

void add_run_options(CLI::App& program_command, RunOptions& run_options) {
  CLI::App* const command = &program_command;
  RunOptions* const options = &run_options;
  command->add_option("--budget", options->budget, "Device memory the program may use: 8GB, 512MiB, or 25% of it")
      ->type_name("BUDGET");
  command->add_option("--host-budget", options->host_budget, "Host memory for what is not on the device")
      ->type_name("BUDGET");
  command->add_option("--file", options->file, "A folder: what the host has no room for is in a file there")
      ->type_name("FOLDER");
  command->add_option("--file-size", options->file_size, "The most bytes of that file; default: half of what is free")
      ->type_name("SIZE");
  command->add_option("--reported-memory", options->reported_memory, "What the program sees as the device's memory")
      ->check(CLI::IsMember({"both", "budget", "device"}));
  command->add_option("--keep", options->keep, "Kernels whose buffers stay on the device, while there is room")
      ->type_name("NAME,...");
  command
      ->add_option("--wait", options->wait,
                   "When clFinish() and other waits end: behind all commands, or when the host has its values")
      ->check(CLI::IsMember({"commands", "values"}));
  command->add_option("--report", options->report, "Write the report to this file as JSON (%p: the process id)")
      ->type_name("FILE");
  command->add_option("--layer", options->layer, "The layer's file, if it is not the installed one")->type_name("FILE");
  command->add_flag("--evict-always", options->evict_always,
                    "Everything leaves the device after every command: a test of correctness");
  command->add_flag("-q,--quiet", options->quiet, "No report, and no line that the layer is there");
}

void take_words(CLI::App& command, const Chosen& chosen_command, RunOptions& options) {
  std::vector<std::string>& words = options.words;
  words = command.remaining();
  if (!words.empty() && words.front().starts_with("-")) throw CLI::ValidationError(words.front(), "no such option");
  if (const auto& behind = chosen_command.behind) {
    if (!words.empty()) words.emplace_back("--");  // it is the program's own
    words.insert(words.end(), behind->begin(), behind->end());
  }
}

void add_run(CLI::App& program, Chosen& chosen_command) {
  const auto options = std::make_shared<RunOptions>();
  CLI::App* const command = program.add_subcommand("run", "Run an unmodified OpenCL program within a device budget");
  add_run_options(*command, *options);
  command->add_flag("--json", options->json, "Print the report as JSON, on stderr; with --quiet nothing else is there")
      ->excludes(command->get_option("--report"));
  command
      ->add_option("--trace-out", options->trace_out,
                   "Write what ran on the device and when, for ui.perfetto.dev (%p: the process id)")
      ->type_name("FILE");
  command->add_option("--svg", options->svg, "Draw the last iteration, or all, if none was found (%p: the process id)")
      ->type_name("FILE");
  command->add_flag("--progress{2}", options->progress,
                    "A line on stderr every 2 seconds, or --progress=SECONDS, with what was done so far");
  command->footer(
      "swapmm run [OPTIONS] -- PROGRAM [ARGUMENTS]: the program's words follow \"--\".\n"
      "The program's exit code is the command's. Codes 2 and 4: the program was not started.\n");
  command->prefix_command();
  command->callback([&chosen_command, options, command] {
    take_words(*command, chosen_command, *options);
    chosen_command.run = [options] { return run_run(*options); };
  });
}

}  // namespace swapmm::cli
