// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "support/program/runner.hpp"
#include "support/test_program.hpp"

namespace swapmm::test {

/// The program as C++ that needs nothing but the library: a main() that does the same steps on the same simulated
/// device as the run of that outcome did, checks all bytes that are read, prints the device's trace hash, and returns 0
/// where everything held. Calls that were refused are expected to be refused again.
[[nodiscard]] std::string cpp_of(const TestProgram& program, const RunSettings& settings, const RunResult& run);

}  // namespace swapmm::test
