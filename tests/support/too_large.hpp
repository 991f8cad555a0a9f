// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include <swapmm/backend/testing/simulated/random.hpp>

#include "support/test_program.hpp"

namespace swapmm::test {

/// Puts so many operations that can never fit at random places of the program: by their tensors alone where those are
/// large enough, else by a work area that is too large by one byte or by many.
void add_too_large(TestProgram& program, simulated::detail::Random& random, std::size_t count);

}  // namespace swapmm::test
