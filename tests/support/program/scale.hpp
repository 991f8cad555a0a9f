// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <swapmm/base/bytes.hpp>

#include "support/test_program.hpp"

namespace swapmm::test {

/// The program is about limits of the device that only the simulated one has: on all host memory, on pinned memory, on
/// a single allocation.
[[nodiscard]] bool limits_memory(const TestProgram& program);

/// The program for a real device, which has that alignment (a power of two) and none of those limits. Where it is
/// larger than the program's own by a factor, all sizes and budgets grow by it: everything is as tight as it was, to
/// the byte. Sizes that were no multiple of 8 become odd.
[[nodiscard]] TestProgram scaled_to(Bytes alignment, TestProgram program);

}  // namespace swapmm::test
