// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include <swapmm/base/result.hpp>

#include "failure.hpp"
#include "quantities.hpp"

// What the commands share of reading their command lines. Each command is a function that adds its options to the
// program's and leaves behind what is to be run once all are read.

namespace swapmm::cli {

/// What all commands understand.
struct CommonOptions {
  bool json = false;   ///< the answer as one JSON text on stdout
  bool quiet = false;  ///< no progress
};

/// The command that was chosen.
struct Chosen {
  /// Of a command that runs a program: the words behind "--", if it stands there.
  std::optional<std::vector<std::string>> behind;
  std::function<ExitCode()> run;
};

/// Adds --json and --quiet.
void add_common(CLI::App& command, CommonOptions& options);

/// A command that runs `run(options)`, with --help, --json and --quiet. `Options` has a member `common`.
template <class Options>
CLI::App& add_command(CLI::App& program, Chosen& chosen, const std::string& name, const std::string& summary,
                      const std::shared_ptr<Options>& options, ExitCode (*run)(const Options&)) {
  CLI::App* const command = program.add_subcommand(name, summary);
  add_common(*command, options->common);
  command->callback([&chosen, options, run] { chosen.run = [options, run] { return run(*options); }; });
  return *command;
}

/// The value of an option, or the end of it: what the parser does not take is wrong use, with its Problem as the
/// message.
template <class Value>
Value taken(const std::string& option, Result<Value> value) {
  if (!value) throw CLI::ValidationError(option, value.problem().message);
  return *std::move(value);
}

/// An option whose text becomes a value by `parse`.
template <class Target, class Value>
CLI::Option* add_parsed(CLI::App& command, const std::string& name, Target& target,
                        Result<Value> (*parse)(std::string_view), const std::string& summary, const std::string& type) {
  return command
      .add_option_function<std::string>(
          name, [&target, parse, name](const std::string& text) { target = taken(name, parse(text)); }, summary)
      ->type_name(type);
}

/// The same with a list between commas.
template <class Value>
CLI::Option* add_list(CLI::App& command, const std::string& name, std::vector<Value>& target,
                      Result<Value> (*parse)(std::string_view), const std::string& summary, const std::string& type) {
  return command
      .add_option_function<std::string>(
          name, [&target, parse, name](const std::string& text) { target = taken(name, parse_each(text, parse)); },
          summary)
      ->type_name(type);
}

/// The commands of the program, one source file each.
void add_fit(CLI::App& program, Chosen& chosen);
void add_plan(CLI::App& program, Chosen& chosen);
void add_compare(CLI::App& program, Chosen& chosen);
void add_simulate(CLI::App& program, Chosen& chosen);
void add_check(CLI::App& program, Chosen& chosen);
void add_explain(CLI::App& program, Chosen& chosen);
void add_show(CLI::App& program, Chosen& chosen);
void add_pack(CLI::App& program, Chosen& chosen);
void add_run(CLI::App& program, Chosen& chosen);
void add_record(CLI::App& program, Chosen& chosen);
void add_replay(CLI::App& program, Chosen& chosen);
void add_machines(CLI::App& program, Chosen& chosen);

}  // namespace swapmm::cli
