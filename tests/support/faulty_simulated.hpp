// SPDX-License-Identifier: Apache-2.0
#pragma once

// The simulated device whose calls can fail.

#include <swapmm/backend/testing/faulty.hpp>
#include <swapmm/backend/testing/simulated.hpp>
#include <swapmm/runtime/core/core.hpp>
#include <swapmm/runtime/core/running_operation.hpp>

namespace swapmm::test {

using FaultySimulated = Faulty<simulated::Backend>;

}  // namespace swapmm::test

// Compiled once, and not in each test that uses a manager.
namespace swapmm::runtime {
extern template class Core<test::FaultySimulated>;
extern template class RunningOperation<test::FaultySimulated>;
}  // namespace swapmm::runtime
