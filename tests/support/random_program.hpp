// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "support/test_program.hpp"

namespace swapmm::test {

/// A program of about that many operations in several iterations, with options for device, manager and scheduler.
/// Most programs repeat themselves well enough to be planned; about a third does something unusual now and then.
[[nodiscard]] TestProgram random_program(std::uint64_t seed, std::size_t operations);

}  // namespace swapmm::test
