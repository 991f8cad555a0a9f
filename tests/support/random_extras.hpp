// SPDX-License-Identifier: Apache-2.0
#pragma once

// What is put into a random program that was drawn without it.

#include <swapmm/backend/testing/simulated/random.hpp>

#include "support/test_program.hpp"

namespace swapmm::test {

/// More operations get a work area, of the size of a tensor: it fits where one was. To be called before the budgets are
/// drawn.
void add_work_areas(simulated::detail::Random& random, TestProgram& program);

/// In later iterations, values are promised to the host behind the operations that wrote them, which no iteration
/// before did: plans that are followed know nothing of it. They may have dropped the value, so the program is not
/// steady.
void add_side_downloads(simulated::detail::Random& random, TestProgram& program);

/// Host views of some tensors are opened, read and written through, and closed: at any place, or at the same places of
/// each iteration, which a plan can follow. The host's memory grows by what the library needs for them, or not.
void add_host_views(simulated::detail::Random& random, TestProgram& program);

/// Views are used whose tensors are gone.
void add_outlived_views(simulated::detail::Random& random, TestProgram& program);

}  // namespace swapmm::test
