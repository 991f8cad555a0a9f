// SPDX-License-Identifier: Apache-2.0
#pragma once

// Two faults in one run, drawn at random: the second one comes after the first, mostly soon, where the library is busy
// with what the first one left.

#include <cstddef>
#include <cstdint>

#include "faults/loop/loop.hpp"

namespace swapmm::test {

/// So many runs, drawn from the seed. Runs in which both came about count.
[[nodiscard]] LoopResult run_pairs(std::uint64_t seed, std::size_t count);

}  // namespace swapmm::test
