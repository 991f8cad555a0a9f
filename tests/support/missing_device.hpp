// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace swapmm::test {

/// A program whose cases need a device sets this before main(): it returns what is missing, or nothing. Where something
/// is, the program says so, runs no case, and counts as skipped.
inline std::string (*find_missing_device)() = nullptr;

[[nodiscard]] inline std::string missing_device() {
  return find_missing_device == nullptr ? std::string() : find_missing_device();
}

}  // namespace swapmm::test
