// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace swapmm::cli {

struct LogView {
  std::string dot;            ///< a file for the graph, or empty
  std::uint64_t from = 0;     ///< the first call that is shown
  std::uint64_t count = 100;  ///< calls, or operations of the graph
  bool json = false;
};

/// The calls of a log as a table, or its program graph.
void show_log(const std::string& path, const LogView& view);

}  // namespace swapmm::cli
