// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string_view>
#include <utility>

#include <swapmm/base/bytes.hpp>
#include <swapmm/base/result.hpp>
#include <swapmm/plan/machine.hpp>
#include <swapmm/plan/planner.hpp>
#include <swapmm/plan/v2/plan.hpp>
#include <swapmm/runtime/book/compiled_plan.hpp>
#include <swapmm/runtime/book/known_machine.hpp>

namespace swapmm::runtime {

/// The machine with its tiers in version 2: memories `device`, `host` and, as far as there are such, `neighbour`,
/// `neighbour-2`, `neighbour-3` and `file`. It must have tiers.
[[nodiscard]] v2::Machine tiered_machine(const KnownMachine& machine);

/// The machine for plans that do not tell the memories behind the device apart: a link is as fast as theirs are on
/// average, if neighbours are filled first, in their order, then the host.
[[nodiscard]] Machine as_one_memory(const Program& program, const KnownMachine& machine);

/// Whether a plan should say which memory behind the device each value is in: there are neighbours, or values of the
/// program may not fit in the memory of the host. False if nothing fits in the host.
[[nodiscard]] bool needs_tiers(const Program& program, const KnownMachine& machine);

/// Makes a plan that says for each value which memory it is in while it is not on the device. A
/// Problem if the planner finds none, or one that the executor cannot follow; see adopt_tiered_plan().
[[nodiscard]] Result<CompiledPlan> make_tiered_plan(std::string_view planner, Program program,
                                                    const KnownMachine& machine, const PlanningOptions& options);

/// Checks a plan of version 2 against the program and the machine it will run on, predicts its time there, and compiles
/// it. A Problem if it is not valid, if it copies otherwise than between the device and one of the tiers, or if it uses
/// forms, pieces or operations that run again.
[[nodiscard]] Result<CompiledPlan> adopt_tiered_plan(Program program, v2::Plan plan, const KnownMachine& machine);

/// Whether the machine of an adopted tiered plan has that memory.
[[nodiscard]] bool knows(Home home, const v2::Plan& plan);

/// What an adopted tiered plan copies from a memory to the device and back in an iteration.
[[nodiscard]] std::pair<Bytes, Bytes> bytes_of(Home home, const v2::Plan& plan);

/// The time of an iteration of a tiered plan with other times of operations and copies than those it was made for.
[[nodiscard]] std::chrono::nanoseconds tiered_iteration(const Trace& trace, v2::Plan plan, const KnownMachine& machine);

}  // namespace swapmm::runtime
