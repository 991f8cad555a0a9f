// SPDX-License-Identifier: Apache-2.0
#pragma once

// The simulated device whose calls can fail.

#include <swapmm/backend/testing/faulty.hpp>
#include <swapmm/backend/testing/simulated.hpp>
#include <swapmm/runtime/instances.hpp>

namespace swapmm::test {

using FaultySimulated = Faulty<simulated::Backend>;

}  // namespace swapmm::test

// Compiled once, and not in each test that uses a manager.
namespace swapmm::runtime {
SWAPMM_RUNTIME_INSTANCES(extern template, , test::FaultySimulated);
}  // namespace swapmm::runtime
