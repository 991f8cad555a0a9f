// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include <swapmm/answers/machine.hpp>
#include <swapmm/base/bytes.hpp>
#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/machine.hpp>

#include "command_line.hpp"
#include "quantities.hpp"

namespace swapmm::cli {

/// The machine as options describe it: a file, single figures, or a file with figures in the place of its own.
struct MachineOptions : MachineFigures {
  std::string file;
};

/// The text of the file, which is read once only: it may be a pipe. Empty if there is no file.
[[nodiscard]] std::string machine_text(const MachineOptions& options);
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

}  // namespace swapmm::cli
