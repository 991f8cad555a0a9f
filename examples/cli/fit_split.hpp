// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "failure.hpp"
#include "machine_options.hpp"
#include "planning.hpp"

namespace swapmm::cli {

/// `swapmm fit --split`.
struct FitSplit {
  bool json = false;
  bool quiet = false;
  std::string trace;
  std::string other;                   ///< of the same program with another batch
  std::vector<std::uint64_t> batches;  ///< of both traces
  std::optional<std::uint64_t> batch;  ///< to be divided; none: that of `trace`
  MachineOptions machine;
  std::string planner;
  TimeLimit limit;
  std::uint64_t top = 5;  ///< tensors that are listed
};

/// Does it fit if the batch is divided into pieces? Failures: wrong use, also of traces of different programs.
/// `machine_text` is that of version 1.
[[nodiscard]] ExitCode fit_split(const FitSplit& asked, std::string_view machine_text);

}  // namespace swapmm::cli
