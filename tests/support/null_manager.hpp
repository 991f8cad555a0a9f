// SPDX-License-Identifier: Apache-2.0
#pragma once

// A manager on the null backend.

#include <swapmm/swapmm.hpp>

#include "support/null_backend.hpp"

// Compiled once, and not in each test that uses it.
namespace swapmm::runtime {
extern template class Core<test::NullBackend>;
extern template class RunningOperation<test::NullBackend>;
}  // namespace swapmm::runtime
