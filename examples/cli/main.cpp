// SPDX-License-Identifier: Apache-2.0
// The command `swapmm`: what swapping can do for a program, asked from a shell.
#include <algorithm>
#include <exception>
#include <iostream>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/version.hpp>

#include "command_line.hpp"
#include "printable.hpp"

namespace swapmm::cli {
namespace {

constexpr const char* exit_codes =
    "Exit codes: 0 done; 1 the answer is no (does not fit, plan not valid); 2 wrong use;\n"
    "3 a file that is not what it should be; 4 cannot read or write.\n"
    "Sizes are written 8GB (10^9), 8GiB (2^30) or in bytes, bandwidths 15.754GB/s, times 10s or 500ms.\n"
    "A file \"-\" is stdin or stdout.";

std::string version() {
  return "swapmm " + std::to_string(version_major) + '.' + std::to_string(version_minor) + '.' +
         std::to_string(version_patch);
}

/// Errors go to stderr, each on one line. Nothing may stand in stdout's buffer any more.
int tell(const CLI::App& program, const std::string& message, ExitCode code) {
  std::cerr << "swapmm";
  for (const CLI::App* command : program.get_subcommands()) std::cerr << ' ' << command->get_name();
  std::cerr << ": " << printable(message) << '\n';
  return static_cast<int>(code);
}

/// Ends the program with that code, and says why unless `message` is empty; an answer that stdout did not take is an
/// error, whatever the code.
int end(const CLI::App& program, ExitCode code, const std::string& message = {}) {
  const bool written = static_cast<bool>(std::cout.flush());
  if (!message.empty()) tell(program, message, code);
  if (!written) return tell(program, "stdout: cannot be written", ExitCode::io);
  return static_cast<int>(code);
}

int run(const CLI::App& program, const Chosen& chosen) {
  try {
    return end(program, chosen.run());
  } catch (const Failure& failure) {
    return end(program, failure.code(), failure.what());
  } catch (const std::bad_alloc&) {
    return end(program, ExitCode::io, "out of memory");
  } catch (const std::exception& error) {
    return end(program, ExitCode::io, error.what());
  }
}

}  // namespace

int run_program(int count, char** words) {
  CLI::App program{
      "What swapping between device and host memory can do for a program, from its trace; and the swapping itself.",
      "swapmm"};
  program.set_version_flag("--version", version(), "Print the version and exit");
  program.require_subcommand(0, 1);  // so that a word which is no command is told as such, and not as one missing
  program.footer(std::string(exit_codes) + '\n');
  program.get_formatter()->column_width(28);

  Chosen chosen;
  for (const auto add : {add_fit, add_plan, add_compare, add_simulate, add_check, add_explain, add_show, add_pack,
                         add_run, add_record, add_replay, add_machines}) {
    add(program, chosen);
  }
  // A command without a footer of its own has the program's.
  for (CLI::App* const command : program.get_subcommands([](const CLI::App*) { return true; })) {
    if (command->get_footer() == program.get_footer()) continue;
    command->footer(command->get_footer() + exit_codes + '\n');
  }
  // What stands behind "--" is the words of another program, of which this one reads nothing.
  std::vector<std::string> own(words + 1, words + count);
  const auto end_of_own = std::find(own.begin(), own.end(), "--");
  if (end_of_own != own.end() && (own.front() == "run" || own.front() == "record")) {
    chosen.behind.emplace(end_of_own + 1, own.end());
    own.erase(end_of_own, own.end());
  }
  std::reverse(own.begin(), own.end());  // as CLI11 takes them
  try {
    program.parse(std::move(own));
  } catch (const CLI::Success& asked) {
    program.exit(asked);  // prints what --help or --version asks for
    return end(program, ExitCode::ok);
  } catch (const CLI::ParseError& error) {
    return end(program, ExitCode::usage, std::string(error.what()) + "; --help tells more");
  }
  if (!chosen.run) return end(program, ExitCode::usage, "which command? --help lists them");
  for (const CLI::App* const used : program.get_subcommands()) {
    for (const CLI::Option* const option : used->get_options()) {
      const auto& given = option->results();
      if (std::ranges::find(given, std::string()) == given.end()) continue;
      return end(program, ExitCode::usage, option->get_name() + ": it is empty; --help tells more");
    }
  }
  return run(program, chosen);
}

}  // namespace swapmm::cli

int main(int count, char** words) { return swapmm::cli::run_program(count, words); }
