// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/planner.hpp>
#include <swapmm/plan/v2/machine.hpp>

#include "command_line.hpp"
#include "planning.hpp"
#include "quantities.hpp"

namespace swapmm::cli {

/// What `swapmm fit` is asked about a machine with many memories.
struct FitMany {
  bool json = false;
  bool quiet = false;
  std::optional<Budget> budget;  ///< of the device, if it is not the machine's
  std::string planner;
  TimeLimit limit;
  Ways ways;
  bool this_budget_only = false;
};

/// Answers `swapmm fit` in version 2: time, bytes of each memory, and how that changes without each of the other
/// memories, and with less of the device's.
[[nodiscard]] ExitCode fit_many(const FitMany& asked, const Trace& trace, v2::Machine machine);

}  // namespace swapmm::cli
