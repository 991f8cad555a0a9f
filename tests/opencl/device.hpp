// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sstream>

#include <swapmm/opencl/backend.hpp>

namespace swapmm::test {

/// The device that the tests run on: what Backend::pick() takes, without a word.
inline opencl::Backend backend() {
  std::ostringstream silent;
  return opencl::Backend::pick(silent);
}

}  // namespace swapmm::test
