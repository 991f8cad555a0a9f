// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "request.hpp"

namespace swapmm::kernel_facts {

/// What of the build's options matters for what kernels read and write.
struct BuildOptions {
  std::vector<std::string> compiler;  ///< arguments for clang
  std::vector<std::string> defined;   ///< names that -D gives a value, or -U takes it away
};

/// Splits the options as drivers do. False with a reason if one is not known.
[[nodiscard]] bool read_options(const Request& request, BuildOptions& options, std::string& reason);

/// Whether clang sees the same program as the driver's compiler: a source that includes files or that asks for macros
/// which compilers define each in its own way may be another program there. False with a reason if so.
[[nodiscard]] bool same_for_every_compiler(const Request& request, const BuildOptions& options, std::string& reason);

}  // namespace swapmm::kernel_facts
