// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

#include <doctest/doctest.h>

#include <swapmm/plan/problem/planning_case.hpp>
#include <swapmm/plan/ways/bound.hpp>
#include <swapmm/plan/ways/program/history.hpp>

namespace swapmm::test {

/// planning::ways_bound() of a trace that fits.
[[nodiscard]] inline std::chrono::nanoseconds bound_of_ways(const Trace& trace, const Machine& machine,
                                                            planning::BoundFor plans = planning::BoundFor::pieces) {
  const Trace plain = planning::without_ways(trace);
  const Result<planning::PlanningCase> planning = planning::make_planning_case(plain, machine);
  REQUIRE(planning);
  return planning::ways_bound(trace, planning::ValueHistory(trace), *planning, plans);
}

}  // namespace swapmm::test
