// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <swapmm/backend/testing/simulated/random.hpp>

#include "support/test_program.hpp"

namespace swapmm::test {

/// All orders of steps, alignments from 1 to 64, one or two copy engines; memory limits come with draw_budgets().
void draw_device(simulated::detail::Random& random, simulated::Options& device);

/// Of some devices one direction of copies is far slower than the other.
/// Behind the budgets: neighbours with room for a part of the values, now and then more than there are paths.
void draw_neighbours(simulated::detail::Random& random, TestProgram& program);
/// Behind files and neighbours, which it does not work together with: values are encoded on their way.
void draw_codec(simulated::detail::Random& random, TestProgram& program);
/// Behind the budgets: a file, and little room on the host.
void draw_file(simulated::detail::Random& random, TestProgram& program);
void draw_slow_link(simulated::detail::Random& random, simulated::Options& device);

/// Any planner, at once or deferred.
void draw_scheduler(simulated::detail::Random& random, SchedulerOptions& scheduler);
/// When it measures, and what it makes of that: with little patience, for the programs are short.
void draw_measures(simulated::detail::Random& random, SchedulerOptions& scheduler);
/// Other budgets at some places of the program. A steady one stays possible.
void draw_budget_changes(simulated::detail::Random& random, TestProgram& program);

/// Options of the manager, and the device's memory; the host's in slabs or block by block. The budget is from exactly
/// the largest bundle of the program to all that ever lives at one time.
void draw_budgets(simulated::detail::Random& random, TestProgram& program);

}  // namespace swapmm::test
