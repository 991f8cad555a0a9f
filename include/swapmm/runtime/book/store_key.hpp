// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include <swapmm/plan/machine.hpp>
#include <swapmm/runtime/observe/program.hpp>

namespace swapmm::runtime {

/// The key of a program's plan in a PlanStore: SHA-256, as 64 hexadecimal digits, of everything that decides whether a
/// plan can be followed, and of who made it. Names of tensors and operations, durations and speeds of links differ from
/// run to run, and are left out; so are handles, of which only those that are the same one count. Linear in the
/// program.
[[nodiscard]] std::string store_key(const Program& program, const Machine& machine, std::string_view planner,
                                    bool allows_replays);

}  // namespace swapmm::runtime
