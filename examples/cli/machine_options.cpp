// SPDX-License-Identifier: Apache-2.0
#include "machine_options.hpp"

#include <filesystem>

#include <swapmm/base/text/figures.hpp>
#include <swapmm/ir/liveness.hpp>

#include "files.hpp"
#include "named_machines.hpp"

namespace swapmm::cli {
namespace {

/// Otherwise liveness and what else rounds up would have to be ready for anything.
void check(const Machine& machine) {
  const Check check = check_machine(machine);
  if (!check) throw Failure(ExitCode::usage, "this machine cannot be: " + check.problem().message);
}

std::string speed(std::uint64_t bytes_per_second) { return decimal_size(Bytes{bytes_per_second}) + "/s"; }

void apply(const MachineOptions& options, Machine& machine) {
  if (options.bandwidth) machine.h2d.bytes_per_second = machine.d2h.bytes_per_second = *options.bandwidth;
  if (options.bandwidth_in) machine.h2d.bytes_per_second = *options.bandwidth_in;
  if (options.bandwidth_out) machine.d2h.bytes_per_second = *options.bandwidth_out;
  if (options.latency) machine.h2d.latency = machine.d2h.latency = *options.latency;
  if (options.alignment) machine.alignment = *options.alignment;
  if (options.max_allocation) machine.max_allocation = options.max_allocation;
  if (options.half_duplex) machine.duplex = Duplex::half;
}

}  // namespace

void add_link_options(CLI::App& command, MachineOptions& options) {
  const std::string otherwise = " [" + speed(default_bandwidth) + "]";
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

Machine make_links(const MachineOptions& options) {
  Machine machine;
  machine.alignment = Bytes{256};
  machine.h2d.bytes_per_second = machine.d2h.bytes_per_second = default_bandwidth;
  machine.device_budget = Bytes{1};
  apply(options, machine);
  check(machine);
  return machine;
}

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

bool has_figures(const MachineOptions& options) {
  return options.budget || options.bandwidth || options.bandwidth_in || options.bandwidth_out || options.latency ||
         options.alignment || options.max_allocation || options.half_duplex;
}

Machine make_machine(const MachineOptions& options, const Trace& trace, std::string_view text) {
  Machine machine;
  if (options.file.empty()) {
    if (!options.budget) throw Failure(ExitCode::usage, "--budget or --machine is missing");
    machine = make_links(options);
  } else {
    machine = machine_from(options.file, text);
    apply(options, machine);
    check(machine);
  }
  if (options.budget) set_budget(machine, options.budget->of(analyze_liveness(trace, machine.alignment).peak));
  if (machine.name.empty()) machine.name = describe(machine);
  return machine;
}

void set_budget(Machine& machine, Bytes budget) {
  machine.device_budget = budget;
  check(machine);
}

std::string describe_links(const Machine& machine) {
  const std::string in = speed(machine.h2d.bytes_per_second);
  const std::string out = speed(machine.d2h.bytes_per_second);
  std::string text = in == out ? in + " each way" : in + " in, " + out + " out";
  const std::chrono::nanoseconds in_latency = machine.h2d.latency;
  const std::chrono::nanoseconds out_latency = machine.d2h.latency;
  if (in_latency != out_latency) {
    text += ", latency " + text::time_text(in_latency) + " in, " + text::time_text(out_latency) + " out";
  } else if (in_latency.count() != 0) {
    text += ", latency " + text::time_text(in_latency);
  }
  if (machine.duplex == Duplex::half) text += ", one at a time";
  return text;
}

std::string describe(const Machine& machine) {
  return decimal_size(machine.device_budget) + ", " + describe_links(machine);
}

}  // namespace swapmm::cli
