// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <random>
#include <string_view>

#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/plan.hpp>

namespace swapmm::test {

/// Changes one thing of a plan, so that its indices stay in range: a wait, a command, an order, a place, a claim, or
/// all that keeps a tensor on the device between two uses. Some changes leave a valid plan valid. Says what it did.
std::string_view mutate(std::mt19937_64& random, const Trace& trace, Plan& plan);

/// Gives each tensor a place of its own, if all of them fit: from such plans mutations reach more valid ones.
void spread_out(const Trace& trace, Plan& plan);

}  // namespace swapmm::test
