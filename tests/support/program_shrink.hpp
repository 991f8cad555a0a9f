// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "support/test_program.hpp"

namespace swapmm::test {

/// Leaves out actions, whole iterations first, for as long as `fails` stays true of what is left. The budgets stay.
[[nodiscard]] TestProgram shrink(TestProgram program, const std::function<bool(const TestProgram&)>& fails);

}  // namespace swapmm::test
