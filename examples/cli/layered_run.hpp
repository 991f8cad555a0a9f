// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "child.hpp"
#include "command_line.hpp"

// A program that runs with the layer: what `run`, `record` and `replay` share.

namespace swapmm::cli {

struct RunOptions {
  std::optional<std::string> budget;
  std::optional<std::string> host_budget;
  std::optional<std::string> file;  ///< a folder
  std::optional<std::string> file_size;
  std::optional<std::string> reported_memory;
  std::optional<std::string> wait;
  std::string keep;
  std::string report;
  bool json = false;  ///< the report as JSON on stderr
  std::string trace_out;
  std::string svg;
  std::string progress;  ///< seconds between two lines
  std::string layer;
  bool evict_always = false;
  bool quiet = false;
  std::vector<std::string> words;  ///< the program's, its name first
};

void add_run_options(CLI::App& command, RunOptions& options);

/// Takes the program's words, those that are left and those behind "--".
void take_words(CLI::App& command, const Chosen& chosen, RunOptions& options);

struct LayeredRun {
  int status = 0;  ///< as waitpid() has it
  bool layer_was_loaded = false;
};

/// Runs the program with the layer. Before it starts anything it checks program, layer and budgets, and throws a
/// Failure (wrong use). `more`: further variables of the program. Says so if the program did not load the layer.
[[nodiscard]] LayeredRun run_layered(const std::string& command, const RunOptions& options, const Variables& more);

}  // namespace swapmm::cli
