// SPDX-License-Identifier: Apache-2.0
#pragma once

// A manager on the null backend.

#include <swapmm/runtime/instances.hpp>
#include <swapmm/swapmm.hpp>

#include "support/null_backend.hpp"

// Compiled once, and not in each test that uses it.
namespace swapmm::runtime {
SWAPMM_RUNTIME_INSTANCES(extern template, , test::NullBackend);
}  // namespace swapmm::runtime
