// SPDX-License-Identifier: Apache-2.0
#include "machine_options.hpp"

#include <filesystem>
#include <optional>
#include <utility>

#include "files.hpp"
#include "named_machines.hpp"

namespace swapmm::cli {
namespace {

/// Otherwise liveness and what else rounds up would have to be ready for anything.
void check(const Machine& machine) {
  const Check check = check_machine(machine);
  if (!check) throw Failure(ExitCode::usage, "this machine cannot be: " + check.problem().message);
}

Machine required(Result<Machine> machine) {
  if (!machine) throw Failure(ExitCode::usage, machine.problem().message);
  return *std::move(machine);
}

}  // namespace

void add_link_options(CLI::App& command, MachineOptions& options) {
  const std::string otherwise = " [" + speed_text(default_bandwidth) + "]";
  add_parsed(command, "--bandwidth", options.bandwidth, parse_bandwidth,
             "Of the link, each way: 15.754GB/s, 900MiB/s" + otherwise, "RATE");
  add_parsed(command, "--bandwidth-in", options.bandwidth_in, parse_bandwidth, "Host to device alone", "RATE");
  add_parsed(command, "--bandwidth-out", options.bandwidth_out, parse_bandwidth, "Device to host alone", "RATE");
  add_parsed(command, "--latency", options.latency, parse_time, "Of each copy: 10us [0]", "TIME");
  add_parsed(command, "--alignment", options.alignment, parse_size, "Offsets are multiples of it [256]", "SIZE");
  add_parsed(command, "--max-allocation", options.max_allocation, parse_size,
             "No tensor crosses a multiple of it: the largest single allocation [no limit]", "SIZE");
  command.add_flag("--half-duplex", options.half_duplex, "Copies in and out share one engine");
}

void add_machine_options(CLI::App& command, MachineOptions& options) {
  command
      .add_option("--machine", options.file,
                  "A file of format swapmm-machine, or a name that `swapmm machines` lists; other options replace\n"
                  "what a file of version 1 says")
      ->type_name("FILE");
  add_parsed(command, "--budget", options.budget, parse_budget,
             "Device memory: 8GB, 512MiB, or a share of the trace's peak of live bytes: 50%, 0.5", "SIZE");
  add_link_options(command, options);
}

Machine make_links(const MachineOptions& options) { return required(links_with(options)); }

std::string machine_text(const MachineOptions& options) {
  if (options.file.empty()) return {};
  if (std::optional<std::string> named = named_machine(options.file)) return *std::move(named);
  // A name without a point or a slash, and no file: one that is not known.
  const bool is_name = options.file != "-" && options.file.find_first_of("./") == std::string::npos;
  if (is_name && !std::filesystem::exists(options.file)) {
    throw Failure(ExitCode::usage, "--machine: there is no file \"" + options.file +
                                       "\", and no machine of that name; there are " + machine_names());
  }
  return load_text(options.file);
}

Machine make_machine(const MachineOptions& options, const Trace& trace, std::string_view text) {
  if (options.file.empty()) {
    if (!options.budget) throw Failure(ExitCode::usage, "--budget or --machine is missing");
    return required(machine_with(options, std::nullopt, trace));
  }
  return required(machine_with(options, machine_from(options.file, text), trace));
}

void set_budget(Machine& machine, Bytes budget) {
  machine.device_budget = budget;
  check(machine);
}

}  // namespace swapmm::cli
