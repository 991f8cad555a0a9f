// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace swapmm::cli {

/// The file that a shell would run for that word: the word itself if it has a slash, else a file of PATH. Throws a
/// Failure (wrong use) if there is none that can be run.
[[nodiscard]] std::string find_program(const std::string& word);

/// Throws a Failure (wrong use) if the system's loader would not put a library of this process's kind into the program
/// that the file is: a program that is statically linked, has another word size or is for another processor, or that
/// runs with more rights than its caller, and so ignores its environment. A script is what its interpreter is.
void check_program(const std::string& file);

/// Throws a Failure (wrong use) if the file is not a library with the entry points of a layer of the OpenCL loader.
void check_layer(const std::string& file);

}  // namespace swapmm::cli
