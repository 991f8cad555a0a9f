// SPDX-License-Identifier: Apache-2.0
#pragma once

// See host_runtime.cpp.

#include <vector>

namespace swapmm::test {

/// A launch that was not run.
struct Launch {
  const void* kernel;
  unsigned groups;
  long long first;  ///< the last argument: of kernels that are launched in parts, where the part begins
};

/// If it is not null, launches are written down there instead of being run.
extern std::vector<Launch>* recorded_launches;

}  // namespace swapmm::test
