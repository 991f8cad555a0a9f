// SPDX-License-Identifier: Apache-2.0
// The plans that a program book keeps for several budgets.
#include <doctest/doctest.h>

#include <cstdint>
#include <memory>
#include <new>

#include <swapmm/runtime/book/program_book.hpp>

#include "support/failing_new.hpp"
#include "support/small_program.hpp"
#include "support/told_book.hpp"
#include "support/weight_desk.hpp"

namespace {

using namespace swapmm;
using namespace swapmm::test;
using runtime::PlanTask;

Bytes budget_number(std::uint64_t i) { return Bytes{256 + 64 * i}; }

}  // namespace

TEST_CASE("plans are kept for eight budgets, and those for the one unused for longest make room") {
  ToldBook told(ToldBook::untried());
  told.sees(updates_from(1), 2);
  for (std::uint64_t i = 1; i < 8; ++i) {
    told.change_budget(budget_number(i));
    told.plan_for_budget();
  }
  for (const std::uint64_t i : {1U, 0U, 2U, 3U, 4U, 5U, 6U, 7U}) {
    told.change_budget(budget_number(i));
    REQUIRE(told.plan() != nullptr);
    CHECK(told.plan()->plan.machine.device_budget == budget_number(i));
  }
  CHECK(told.book.plans_made() == 8);
  told.change_budget(budget_number(8));
  CHECK(told.plan() == nullptr);
  for (const std::uint64_t i : {0U, 2U, 3U, 4U, 5U, 6U, 7U}) {
    told.change_budget(budget_number(i));
    CHECK(told.plan() != nullptr);
  }
  told.change_budget(budget_number(1));
  CHECK(told.plan() == nullptr);
}

TEST_CASE("a change of budget prepares the next budget and the one for a failed change, however many are kept") {
  ToldBook told(ToldBook::untried());
  told.sees(updates_from(1), 2);
  for (std::uint64_t i = 1; i < 20; ++i) {
    CAPTURE(i);
    told.book.prepare_budgets({budget_number(i), Bytes{0}});
    told.machine.device_budget = budget_number(i);
    told.book.use_budget(budget_number(i));
    CHECK(told.plan() == nullptr);
    told.plan_for_budget();
    REQUIRE(told.plan() != nullptr);
    CHECK(told.plan()->plan.machine.device_budget == budget_number(i));
  }
  told.book.prepare_budgets({Bytes{1024 * 1024}, Bytes{0}});
  told.book.use_budget(Bytes{0});
  CHECK(told.plan() == nullptr);
}

TEST_CASE("a program is right and within its budget under more budgets than plans are kept for") {
  WeightDesk desk({}, {.device_budget = Bytes{384}}, Scheduler({.planner = "belady", .trial_iterations = 0}), 12);
  int iterations = 0;
  const auto iterate = [&](int count) {
    for (int i = 0; i < count; ++i) desk.increase_all("train");
    iterations += count;
  };
  iterate(4);
  for (const std::uint64_t bytes : {352U, 320U, 288U, 256U, 224U, 192U, 160U, 128U, 96U, 384U, 352U, 96U}) {
    CAPTURE(bytes);
    desk.manager.set_budget(Bytes{bytes});
    const std::uint64_t followed = desk.followed();
    iterate(3);
    CHECK(desk.followed() > followed);
    CHECK(desk.manager.report().device_budget == Bytes{bytes});
  }
  for (std::size_t w = 0; w < desk.weights.size(); ++w) {
    CHECK(desk.weights[w].download() == std::vector<int>(length, static_cast<int>(w) + iterations));
  }
}

TEST_CASE("plans for a budget are made once, and the machine is asked for only then") {
  ToldBook told(ToldBook::untried());
  told.sees(updates_from(1), 2);
  told.plan_for_budget();
  CHECK(told.machines_asked == 0);
  told.change_budget(budget_number(1));
  told.plan_for_budget();
  CHECK(told.machines_asked == 1);
  CHECK(told.book.plans_made() == 2);
  CHECK(told.plan()->plan.machine.device_budget == budget_number(1));
  told.plan_for_budget();
  CHECK(told.machines_asked == 1);
  CHECK(told.book.plans_made() == 2);
}

TEST_CASE("a name that was never seen has no plans for any budget") {
  ToldBook told(ToldBook::untried());
  told.plan_for_budget("never");
  told.change_budget(budget_number(1));
  told.plan_for_budget("never");
  CHECK(told.machines_asked == 0);
  CHECK(told.book.cases("never").empty());
}

TEST_CASE("a budget that nobody prepared brings no plan and takes none") {
  ToldBook told(ToldBook::untried());
  told.sees(updates_from(1), 2);
  const runtime::FollowablePtr plan = told.plan();
  told.book.use_budget(budget_number(1));
  CHECK(told.plan() == plan);
  told.plan_for_budget();
  CHECK(told.machines_asked == 0);
  CHECK(told.book.plans_made() == 1);
}

TEST_CASE("with deferred planning the cycles get their plans for a new budget one after the other") {
  ToldBook told({.planning = Planning::deferred, .trial_iterations = 0});
  told.sees(updates_from(1), 2);
  told.finish();
  told.sees(updates_from(11, 7), 2);
  told.finish();
  told.change_budget(budget_number(1));
  told.plan_for_budget();
  const std::shared_ptr<PlanTask> first = told.book.pending_task();
  REQUIRE(first != nullptr);
  told.plan_for_budget();
  CHECK(told.book.pending_task() == first);
  told.finish();
  CHECK(told.book.cases("train").size() == 1);
  told.plan_for_budget();
  told.finish();
  CHECK(told.book.cases("train").size() == 2);
  told.plan_for_budget();
  CHECK(told.book.pending_task() == nullptr);
  CHECK(told.machines_asked == 4);
  told.plan_for_budget();
  CHECK(told.machines_asked == 4);
}

TEST_CASE("a plan that is ready too late, when its budget is no longer kept, is not installed") {
  ToldBook told({.planning = Planning::deferred, .trial_iterations = 0});
  told.sees(updates_from(1), 2);
  const std::shared_ptr<PlanTask> task = told.book.pending_task();
  REQUIRE(task != nullptr);
  for (std::uint64_t i = 1; i <= 8; ++i) told.change_budget(budget_number(i));
  task->run();
  told.book.install_finished();
  CHECK(told.book.pending_task() == nullptr);
  CHECK(told.book.plans_made() == 0);
  for (std::uint64_t i = 0; i <= 8; ++i) {
    told.change_budget(budget_number(i));
    CHECK(told.plan() == nullptr);
  }
}

TEST_CASE("a plan for a new budget that no memory is left to prepare is prepared the next time") {
  for (std::uint64_t n = 1;; ++n) {
    REQUIRE(n < 1000);
    ToldBook told({.planning = Planning::deferred, .trial_iterations = 0});
    told.sees(updates_of_tensors({1}), 2);
    told.finish();
    told.change_budget(budget_number(1));
    bool failed = false;
    {
      const FailingNew failing(n);
      try {
        told.plan_for_budget();
      } catch (const std::bad_alloc&) {
        failed = true;
      }
    }
    if (failed) told.plan_for_budget();
    told.finish();
    REQUIRE(told.plan() != nullptr);
    CHECK(told.plan()->plan.machine.device_budget == budget_number(1));
    if (!failed) break;
  }
}

TEST_CASE("of programs whose tensors are gone no plan is made for a new budget, and the others get theirs") {
  ToldBook told(ToldBook::untried());
  told.sees(updates_from(1), 2);
  told.sees(updates_from(11, 7), 2);
  told.change_budget(budget_number(1));
  told.book.plan_for_budget(
      "train", [&] { return told.machine; },
      [](const runtime::Program& program) { return program.trace.operations.size() == 7; });
  REQUIRE(told.book.cases("train").size() == 1);
  CHECK(told.plan()->program.trace.operations.size() == 7);
  CHECK(told.planner_asked == 3);
  CHECK(told.book.notes().empty());
}

TEST_CASE("iterations that are no program have a note and no plan, not under the next budget either") {
  ToldBook told(ToldBook::untried());
  runtime::IterationLog log = updates_from(1, 2);
  log.events.insert(log.events.begin() + 1, {runtime::LogEvent::What::upload, 0});  // of what was used before
  told.sees(log, 2);
  REQUIRE(told.book.notes().size() == 1);
  CHECK(says(told.book.notes()[0], {"\"train\" stays on demand", "\"t1\"", "before and after its upload"}));
  REQUIRE(told.report().on_demand.size() == 1);
  CHECK(told.report().on_demand[0].reason == OnDemandReason::no_plan);
  CHECK(says(told.report().on_demand[0].why, {"before and after its upload"}));
  told.change_budget(budget_number(1));
  told.plan_for_budget();
  CHECK(told.plan() == nullptr);
  CHECK(told.planner_asked == 0);
  CHECK(told.book.notes().size() == 1);
}
