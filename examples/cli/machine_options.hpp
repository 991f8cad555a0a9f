// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <swapmm/base/bytes.hpp>
#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/machine.hpp>

#include "command_line.hpp"
#include "quantities.hpp"

namespace swapmm::cli {

/// The machine as options describe it: a file, single figures, or a file with figures in the place of its own.
struct MachineOptions {
  std::string file;
  std::optional<Budget> budget;
  std::optional<std::uint64_t> bandwidth;
  std::optional<std::uint64_t> bandwidth_in;
  std::optional<std::uint64_t> bandwidth_out;
  std::optional<std::chrono::nanoseconds> latency;
  std::optional<Bytes> alignment;
  std::optional<Bytes> max_allocation;
  bool half_duplex = false;
};

/// What is taken where nothing says how fast the link is.
inline constexpr std::uint64_t default_bandwidth = 15'754'000'000;

/// The text of the file, which is read once only: it may be a pipe. Empty if there is no file.
[[nodiscard]] std::string machine_text(const MachineOptions& options);
/// Whether anything but the file is given.
[[nodiscard]] bool has_figures(const MachineOptions& options);

/// Adds the options of the links and of places.
void add_link_options(CLI::App& command, MachineOptions& options);
/// Adds those, --machine and --budget.
void add_machine_options(CLI::App& command, MachineOptions& options);

/// The machine without its budget, which is set to 1. Failures: wrong use.
[[nodiscard]] Machine make_links(const MachineOptions& options);

/// The machine for that trace, of whose peak a budget may be a share. Failures: wrong use, or what the file gives.
/// `text` is machine_text().
[[nodiscard]] Machine make_machine(const MachineOptions& options, const Trace& trace, std::string_view text);

/// Sets the budget and checks the machine; what it does not pass is wrong use.
void set_budget(Machine& machine, Bytes budget);

/// "8.00 GB, 15.75 GB/s each way"
[[nodiscard]] std::string describe(const Machine& machine);
/// "15.75 GB/s each way", or "12.00 GB/s in, 11.00 GB/s out, latency 10.000 us in, 20.000 us out": latencies only where
/// there are some, both only where they differ.
[[nodiscard]] std::string describe_links(const Machine& machine);

}  // namespace swapmm::cli
