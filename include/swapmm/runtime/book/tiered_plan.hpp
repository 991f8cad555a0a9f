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

/// The machine with its tiers in version 2: memories `device`, `host` and `file`. It must have tiers.
[[nodiscard]] v2::Machine tiered_machine(const KnownMachine& machine);

/// The machine for plans that do not tell host and file apart: a link is as fast as both are on average, if the host is
/// filled first.
[[nodiscard]] Machine as_one_memory(const Program& program, const KnownMachine& machine);

/// Whether values of the program may not fit in the memory of the host, so that a plan should say which ones are in the
/// file. False if nothing fits.
[[nodiscard]] bool needs_tiers(const Program& program, const KnownMachine& machine);

/// Makes a plan that says for each value whether it is in the host or in the file while it is not on the device. A
/// Problem if the planner finds none, or one that the executor cannot follow; see adopt_tiered_plan().
[[nodiscard]] Result<CompiledPlan> make_tiered_plan(std::string_view planner, Program program,
                                                    const KnownMachine& machine, const PlanningOptions& options);

/// Checks a plan of version 2 against the program and the machine it will run on, predicts its time there, and compiles
/// it. A Problem if it is not valid, if it copies otherwise than between the device and one of the tiers, or if it uses
/// forms, pieces or operations that run again.
[[nodiscard]] Result<CompiledPlan> adopt_tiered_plan(Program program, v2::Plan plan, const KnownMachine& machine);

/// What an adopted tiered plan copies from the file and to it in an iteration.
[[nodiscard]] std::pair<Bytes, Bytes> file_bytes(const v2::Plan& plan);

/// The time of an iteration of a tiered plan with other times of operations and copies than those it was made for.
[[nodiscard]] std::chrono::nanoseconds tiered_iteration(const Trace& trace, v2::Plan plan, const KnownMachine& machine);

}  // namespace swapmm::runtime
