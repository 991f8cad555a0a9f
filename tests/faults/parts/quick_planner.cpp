// SPDX-License-Identifier: Apache-2.0
#include "faults/parts/quick_planner.hpp"

#include <swapmm/plan/planners.hpp>

namespace swapmm::test {

PlannerChoice quick_planner() { return belady_planner({.bound = {.usual = {.rounds = 0}}}); }

}  // namespace swapmm::test
