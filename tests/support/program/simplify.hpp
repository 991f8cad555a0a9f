// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "support/test_program.hpp"

namespace swapmm::test {

/// Sets options of device, manager and scheduler to their defaults, makes tensors small and equal, and takes the
/// plainest form of each action, one after another, wherever `fails` stays true. Says whether anything was changed.
bool simplify(TestProgram& program, const std::function<bool(const TestProgram&)>& fails);

}  // namespace swapmm::test
