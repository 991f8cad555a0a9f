// SPDX-License-Identifier: Apache-2.0
#pragma once

// The command line of the examples whose options are all numbers, and their exit code.

#include <cstdint>
#include <cstdlib>
#include <exception>
#include <functional>
#include <iostream>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace networks {

/// Options by name, such as "--seed".
using Options = std::map<std::string, std::uint64_t*>;

/// Sets the options that `words` name: "--seed", "7", ... Throws std::invalid_argument, with the names that there are,
/// if one is not known or has no number.
inline void set_options(const std::vector<std::string>& words, const Options& options) {
  if (words.size() % 2 != 0) throw std::invalid_argument("each option takes a number");
  for (std::size_t i = 0; i < words.size(); i += 2) {
    const auto option = options.find(words[i]);
    if (option != options.end()) {
      *option->second = std::stoull(words[i + 1]);
      continue;
    }
    std::string names;
    for (const auto& [name, value] : options) names += ' ' + name;
    throw std::invalid_argument("unknown option " + words[i] + "; options are" + names);
  }
}

/// The exit code of a program that compares its results: 0 if `run(words)` says that they are right, 1 if not, and 2,
/// after a message, if it throws.
inline int exit_code(std::string_view program, int count, char** words,
                     const std::function<bool(const std::vector<std::string>&)>& run) {
  try {
    return run({words + 1, words + count}) ? EXIT_SUCCESS : EXIT_FAILURE;
  } catch (const std::exception& error) {
    std::cerr << program << ": " << error.what() << '\n';
    return 2;
  }
}

}  // namespace networks
