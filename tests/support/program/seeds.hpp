// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "support/program/oracle.hpp"
#include "support/test_program.hpp"

namespace swapmm::test {

/// The random program of that seed, and what is asked of it: the same wherever seeds are counted.
[[nodiscard]] TestProgram program_of(std::uint64_t seed);
[[nodiscard]] Scrutiny scrutiny_of(std::uint64_t seed);
/// On the simulated device.
[[nodiscard]] Verdict judge_seed(std::uint64_t seed);

}  // namespace swapmm::test
