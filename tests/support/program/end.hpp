// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "support/test_program.hpp"

namespace swapmm::test {

/// One of the things that go when a program is over.
struct Ending {
  enum class What : std::uint8_t { tensor, promise, iteration, backend, manager, host_view };
  What what = What::tensor;
  std::uint8_t number = 0;  ///< slot, or number of the promise
  bool collect = false;     ///< the promise, or read through the host view, before it goes
};

/// Slots in which a host view may be in the end.
[[nodiscard]] std::vector<std::uint8_t> slots_with_views(const TestProgram& program);

/// In which order they go: plainly as the variables of a C++ program (host views and tensors from the last slot to the
/// first, the iteration, promises from the last to the first, the manager), or in one drawn from the program's seed.
[[nodiscard]] std::vector<Ending> endings(const TestProgram& program);

}  // namespace swapmm::test
