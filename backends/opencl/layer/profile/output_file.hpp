// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace swapmm::opencl::layer {

/// Writes a whole file, or replaces its contents. Returns why that is not possible; empty: it is written. Never waits
/// for a reader and never causes a signal, so only ordinary files are written, and none beyond the process's limit.
[[nodiscard]] std::string write_file(const std::string& name, std::string_view text);

}  // namespace swapmm::opencl::layer
