// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "command_line.hpp"
#include "machine_options.hpp"
#include "planning.hpp"

namespace swapmm::cli {

/// What `swapmm fit` is asked about a machine with many memories.
struct FitMany {
  bool json = false;
  bool quiet = false;
  std::string trace;  ///< the file
  const MachineOptions& machine;
  std::string planner;
  TimeLimit limit;
  bool this_budget_only = false;
};

/// Answers `swapmm fit` for a machine file of version 2: time, bytes of each memory, and how that changes without each
/// of the other memories, and with less of the device's.
[[nodiscard]] ExitCode fit_many(const FitMany& asked, std::string_view machine_text);

}  // namespace swapmm::cli
