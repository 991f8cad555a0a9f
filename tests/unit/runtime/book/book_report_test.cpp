// SPDX-License-Identifier: Apache-2.0
// What a program book says in the report, of iterations told to it as plain data.
#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include <swapmm/plan/stalls.hpp>

#include "support/measured_book.hpp"

namespace {

using namespace swapmm;
using namespace swapmm::runtime;
using namespace swapmm::test;
using std::chrono::nanoseconds;

std::vector<OnDemandSummary> reasons_of(const ProgramBook& book) {
  Report report;
  book.summarize(report);
  return report.on_demand;
}

}  // namespace

TEST_CASE("the report has the longest stalls of a plan, and how many there are") {
  SchedulerOptions options;
  options.planner = "per-operation";
  ProgramBook book(options);
  Machine machine;
  machine.device_budget = Bytes{128};
  machine.h2d.bytes_per_second = 100'000'000;
  machine.d2h.bytes_per_second = 100'000'000;
  const Times durations{10, 20, 30, 40, 50, 60, 70, 80};
  for (int i = 0; i < 2; ++i) book.observed("train", log_of_updates(1, durations, true), machine);
  REQUIRE(book.cases("train").size() == 1);
  const CompiledPlan& plan = *book.cases("train").front().plan;
  REQUIRE(plan.stalls.size() > 5);
  Report report;
  book.summarize(report);
  REQUIRE(report.plans.size() == 1);
  const PlanSummary& summary = report.plans[0];
  CHECK(summary.iteration == "train");
  CHECK(summary.planner == "per-operation");
  CHECK(summary.operations == 8);
  CHECK(summary.iterations_per_cycle == 1);
  CHECK(summary.predicted == plan.plan.predicted);
  CHECK(summary.state == PlanState::on_trial);
  CHECK(summary.measured == nanoseconds{0});
  CHECK(summary.on_demand == nanoseconds{0});
  CHECK(summary.stalled_operations == plan.stalls.size());
  REQUIRE(summary.stalls.size() == 5);
  for (std::size_t i = 0; i < 5; ++i) {
    CHECK(summary.stalls[i].time == plan.stalls[i].time);
    CHECK(summary.stalls[i].what == describe(plan.stalls[i], plan.program.trace, plan.plan));
  }
}

TEST_CASE("that nothing repeats is said once as many iterations were seen as are searched for a cycle") {
  SchedulerOptions options = MeasuredBook::options();
  options.max_period = 2;
  MeasuredBook desk(options);
  for (std::uint64_t program = 1; program <= 3; ++program) {
    desk.observe(program);
    CHECK(reasons_of(desk.book).empty());
  }
  desk.observe(4);
  const auto reasons = reasons_of(desk.book);
  REQUIRE(reasons.size() == 1);
  CHECK(reasons[0].iteration == "train");
  CHECK(reasons[0].reason == OnDemandReason::nothing_repeats);
  CHECK(reasons[0].why == "its last 4 iterations are no cycle of up to 2 (SchedulerOptions::max_period)");
  desk.observe(4);
  CHECK(desk.book.cases("train").size() == 1);
  CHECK(reasons_of(desk.book).empty());
}

TEST_CASE("of two names only the one whose plan is awaited says so, and the other one's turn comes after it") {
  SchedulerOptions options = MeasuredBook::options();
  options.max_period = 2;
  options.planning = Planning::deferred;
  MeasuredBook desk(options);
  for (int i = 0; i < 2; ++i) desk.observe();
  for (int i = 0; i < 4; ++i) {
    desk.book.observed("test", log_of_updates(MeasuredBook::others, usual_times, true), desk.machine);
    const auto reasons = reasons_of(desk.book);
    REQUIRE(reasons.size() == 1);
    CHECK(reasons[0].iteration == "train");
    CHECK(reasons[0].reason == OnDemandReason::plan_is_awaited);
  }
  desk.book.pending_task()->run_once();
  desk.book.observed("test", log_of_updates(MeasuredBook::others, usual_times, true), desk.machine);
  const auto reasons = reasons_of(desk.book);
  REQUIRE(reasons.size() == 1);
  CHECK(reasons[0].iteration == "test");
}

TEST_CASE("that nothing repeats is said though an iteration came again, where there is no cycle") {
  SchedulerOptions options = MeasuredBook::options();
  options.max_period = 2;
  MeasuredBook desk(options);
  for (const std::uint64_t program : {1U, 2U, 3U}) desk.observe(program);
  CHECK(reasons_of(desk.book).empty());
  desk.observe(1);
  REQUIRE(reasons_of(desk.book).size() == 1);
  CHECK(reasons_of(desk.book)[0].reason == OnDemandReason::nothing_repeats);
}
