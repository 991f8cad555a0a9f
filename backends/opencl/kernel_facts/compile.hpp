// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "request.hpp"

namespace swapmm::kernel_facts {

/// The reason if there is no compiler.
constexpr const char* no_compiler = "there is no " SWAPMM_CLANG_NAME;

/// Compiles the program to LLVM's bitcode, without optimization, with the program clang of the LLVM that this is built
/// with. Starts a process, and for headers makes a folder that is gone when this returns. Empty with a reason if it
/// fails.
[[nodiscard]] std::string compile(const Request& request, const std::vector<std::string>& options, std::string& reason);

}  // namespace swapmm::kernel_facts
