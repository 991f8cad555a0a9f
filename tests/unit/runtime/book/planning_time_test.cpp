// SPDX-License-Identifier: Apache-2.0
// How long a manager's planner may take: planning_time, planning_share and planning_limit.
#include <doctest/doctest.h>

#include <chrono>

#include <swapmm/plan/planner.hpp>
#include <swapmm/swapmm.hpp>

#include "support/own_planner_desk.hpp"

namespace swapmm::test::planning_time_test {

TEST_CASE("planning_time reaches an own planner as go_on") {
  int asked = 0;
  OwnPlannerDesk desk({.planner = {"patient",
                                   [&](const Trace& trace, const Machine& machine, const PlanningOptions& options) {
                                     CHECK(options.go_on);
                                     CHECK(!options.keeps_to_steps);
                                     while (options.go_on({})) ++asked;
                                     return plan_like_belady(trace, machine);
                                   }},
                       .planning_time = std::chrono::milliseconds{2}});
  desk.iterate(5);
  CHECK(asked > 0);
  CHECK(desk.followed() > 0);
}

TEST_CASE("planning_share keeps a young program from waiting for planning_time") {
  int asked = 0;
  const auto begin = std::chrono::steady_clock::now();
  OwnPlannerDesk desk({.planner = {"patient",
                                   [&](const Trace& trace, const Machine& machine, const PlanningOptions& options) {
                                     while (options.go_on({})) ++asked;
                                     return plan_like_belady(trace, machine);
                                   }},
                       .planning_time = std::chrono::hours{1},
                       .planning_share = 0.25});
  desk.iterate(5);
  CHECK(asked > 0);
  CHECK(desk.followed() > 0);
  // At least the 20 ms that every planner gets.
  CHECK(std::chrono::steady_clock::now() - begin >= std::chrono::milliseconds{20});
}

TEST_CASE("planning_share without planning_time is no limit") {
  OwnPlannerDesk desk({.planner = {"told",
                                   [&](const Trace& trace, const Machine& machine, const PlanningOptions& options) {
                                     CHECK(!options.go_on);
                                     return plan_like_belady(trace, machine);
                                   }},
                       .planning_limit = std::chrono::milliseconds{0},
                       .planning_share = 0.25});
  desk.iterate(5);
  CHECK(desk.followed() > 0);
}

TEST_CASE("without planning_time a planner keeps to its steps, and planning_limit ends them") {
  int asked = 0;
  OwnPlannerDesk desk({.planner = {"endless",
                                   [&](const Trace& trace, const Machine& machine, const PlanningOptions& options) {
                                     CHECK(options.keeps_to_steps);
                                     CHECK(options.go_on);
                                     while (options.go_on({})) ++asked;
                                     return plan_like_belady(trace, machine);
                                   }},
                       .planning_limit = std::chrono::milliseconds{2}});
  desk.iterate(5);
  CHECK(asked > 0);
  CHECK(desk.followed() > 0);
}

TEST_CASE("a manager's planner has a limit that nobody has set") {
  bool told = false;
  OwnPlannerDesk desk(
      {.planner = {"told", [&](const Trace& trace, const Machine& machine, const PlanningOptions& options) {
                     told = options.keeps_to_steps && options.go_on && options.go_on({}) && !options.go_on({.part = 0});
                     return plan_like_belady(trace, machine);
                   }}});
  desk.iterate(5);
  CHECK(told);
}

TEST_CASE("negative times for planning are refused") {
  CHECK_THROWS_WITH_AS(Scheduler({.planning_time = std::chrono::milliseconds{-1}}),
                       "SchedulerOptions::planning_time is -1.000000: it is 0 ms or more", UsageError);
  CHECK_THROWS_WITH_AS(Scheduler({.planning_limit = std::chrono::milliseconds{-5}}),
                       "SchedulerOptions::planning_limit is -5.000000: it is 0 ms or more", UsageError);
}

}  // namespace swapmm::test::planning_time_test
