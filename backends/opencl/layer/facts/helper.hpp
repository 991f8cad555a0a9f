// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

namespace swapmm::opencl::layer::facts {

/// Gives a program to swapmm-kernel-facts, a process of its own, and returns what it writes. None if there is no such
/// program, if it fails, or if it takes too long. Must be called on a thread that blocks all signals.
[[nodiscard]] std::optional<std::string> ask_helper(const std::string& request);

}  // namespace swapmm::opencl::layer::facts
