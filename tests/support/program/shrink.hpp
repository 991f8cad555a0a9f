// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "support/test_program.hpp"

namespace swapmm::test {

/// Leaves out actions, whole iterations first, and simplifies what is left (program_simplify.hpp), for as long as
/// `fails` stays true of it. Of a program that fails only where it is steady, iterations stay alike.
[[nodiscard]] TestProgram shrink(TestProgram program, const std::function<bool(const TestProgram&)>& fails);

}  // namespace swapmm::test
