// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "command_line.hpp"
#include "planning.hpp"

namespace swapmm::cli {

/// What `swapmm compare` is asked about a machine with many memories.
struct CompareMany {
  bool json = false;
  bool quiet = false;
  std::vector<std::string> traces;  ///< files
  std::string machine;              ///< for messages
  std::vector<std::string> planners;
  TimeLimit limit;
  Ways ways;
};

/// The planners side by side on a machine file of version 2.
[[nodiscard]] ExitCode compare_many(const CompareMany& asked, std::string_view machine_text);

}  // namespace swapmm::cli
