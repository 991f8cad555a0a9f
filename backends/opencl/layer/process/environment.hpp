// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <string>
#include <system_error>

namespace swapmm::opencl::layer {

/// A variable of the environment; null if it is not set. A program that sets variables while others read them is in
/// error with and without the layer.
[[nodiscard]] inline const char* variable(const char* name) {
  return std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
}

/// What a value of errno means, as text. Unlike strerror(), for several threads.
[[nodiscard]] inline std::string reason_of(int error) { return std::generic_category().message(error); }

}  // namespace swapmm::opencl::layer
