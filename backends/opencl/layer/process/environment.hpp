// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/resource.h>

#include <cstdint>
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

/// The most bytes that a file may have. Beyond that the system sends the program a signal.
[[nodiscard]] inline std::uint64_t file_size_limit() {
  rlimit limit{};
  return getrlimit(RLIMIT_FSIZE, &limit) == 0 ? limit.rlim_cur : 0;
}

}  // namespace swapmm::opencl::layer
