// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/auxv.h>
#include <sys/resource.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <system_error>

namespace swapmm::opencl::layer {

/// A variable of the environment; null if it is not set, and always in a program with more rights than its caller. The
/// layer reads the environment with this alone. A program that sets variables while others read them is in error with
/// and without the layer.
[[nodiscard]] inline const char* variable(const char* name) {
  return secure_getenv(name);  // NOLINT(concurrency-mt-unsafe)
}

/// True if the program has more rights than its caller (set-uid, set-gid and the like), who chose its environment.
[[nodiscard]] inline bool has_more_rights_than_caller() { return getauxval(AT_SECURE) != 0; }

/// What a value of errno means, as text. Unlike strerror(), for several threads.
[[nodiscard]] inline std::string reason_of(int error) { return std::generic_category().message(error); }

/// The most bytes that a file may have. Beyond that the system sends the program a signal.
[[nodiscard]] inline std::uint64_t file_size_limit() {
  rlimit limit{};
  return getrlimit(RLIMIT_FSIZE, &limit) == 0 ? limit.rlim_cur : 0;
}

}  // namespace swapmm::opencl::layer
