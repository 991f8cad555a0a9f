// SPDX-License-Identifier: Apache-2.0
// What a program book concludes from measured times, told to it as plain data: no device runs.
#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include <swapmm/base/text/figures.hpp>

#include "support/measured_book.hpp"

using namespace swapmm;
using namespace swapmm::runtime;
using namespace swapmm::test;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

// ---- trials

TEST_CASE("a plan that is not slower than the lower limit of on demand is kept at once") {
  MeasuredBook desk;
  const std::uint64_t id = desk.make_plan();
  desk.book.iteration_took(id, nanoseconds{1000}, true);
  desk.rounds_take(1010, 2);
  CHECK(desk.front().state == PlanState::settled);
  CHECK(!desk.front().checking);
  CHECK(desk.report().notes.empty());
}

TEST_CASE("rounds on demand decide once there are enough of them, not before, and no later round by the plan") {
  const std::string took = text::time_text(nanoseconds{1000});
  SUBCASE("on demand is faster") {
    MeasuredBook desk;
    const std::uint64_t id = desk.check();
    desk.demand_takes(id, 500, 1);
    CHECK(desk.front().checking);
    desk.rounds_take(1000, 1);  // the host was ahead
    CHECK(desk.front().checking);
    desk.demand_takes(id, 500, 1);
    CHECK(desk.front().state == PlanState::left);
    REQUIRE(desk.report().notes.size() == 1);
    CHECK(desk.report().notes[0] == "iteration \"train\": the plan by tester takes " + took + " a round, on demand " +
                                        text::time_text(nanoseconds{500}) + ": gone back to that");
    REQUIRE(desk.report().on_demand.size() == 1);
    CHECK(desk.report().on_demand[0].reason == OnDemandReason::on_demand_is_faster);
    CHECK(desk.report().on_demand[0].why ==
          "the plan by tester takes " + took + " a round, on demand " + text::time_text(nanoseconds{500}));
    CHECK(desk.report().plans[0].measured == nanoseconds{1000});
    CHECK(desk.report().plans[0].on_demand == nanoseconds{500});
  }
  SUBCASE("the plan is faster than the rounds that nobody timed operation by operation") {
    MeasuredBook desk;
    const std::uint64_t id = desk.check();
    desk.demand_takes(id, 5000, 1);
    CHECK(desk.front().checking);
    desk.demand_takes(id, 5000, 1);
    CHECK(desk.front().state == PlanState::settled);
    CHECK(!desk.front().checking);
    CHECK(desk.front().patience == 1);
    CHECK(desk.report().notes.empty());
    CHECK(desk.report().on_demand.empty());
  }
}

TEST_CASE("rounds on demand of other iterations decide nothing") {
  MeasuredBook desk;
  const std::uint64_t id = desk.check();
  desk.book.prepare_budgets({Bytes{512}});
  desk.book.use_budget(Bytes{512});
  desk.demand_takes(id, 500, 2);  // not for the plan of this budget
  desk.book.use_budget(desk.machine.device_budget);
  REQUIRE(desk.front().checking);
  const std::uint64_t other = desk.observe(MeasuredBook::others);
  desk.demand_takes(other, 500, 3);
  CHECK(desk.front().checking);
  desk.demand_takes(id, 500, 2);
  CHECK(desk.front().state == PlanState::left);
}

TEST_CASE("a plan that loses against the one before it gives way to that one, and patience grows") {
  MeasuredBook desk;
  desk.settle(1000);
  const FollowablePtr first = desk.front().plan;
  desk.load(Way::swapping);
  REQUIRE(desk.front().state == PlanState::on_trial);
  CHECK(desk.front().predicted == nanoseconds{2180});
  desk.rounds_take(2180, 2);
  CHECK(desk.front().state == PlanState::settled);
  CHECK(desk.front().plan == first);
  CHECK(desk.front().predicted == nanoseconds{1000});
  CHECK(desk.front().times.median() == nanoseconds{1000});
  CHECK(desk.front().patience == 2);
  REQUIRE(desk.report().notes.size() == 1);
  CHECK(desk.report().notes[0] == "iteration \"train\": the plan by somebody takes " +
                                      text::time_text(nanoseconds{2180}) + " a round, the plan before it " +
                                      text::time_text(nanoseconds{1000}) + ": gone back to that");
  CHECK(!desk.book.still_chosen("train", desk.front().lost));
  CHECK(desk.book.still_chosen("train", first));
}

TEST_CASE("patience grows where a new plan gains nothing, and is gone where one does") {
  MeasuredBook desk;
  desk.settle(1000);
  std::size_t patience = 1;
  for (const Way way : {Way::turned, Way::resident, Way::turned}) {
    desk.load(way);
    desk.rounds_take(1000, 2);
    patience *= 2;
    CHECK(desk.front().state == PlanState::settled);
    CHECK(desk.front().before == nullptr);
    CHECK(desk.front().patience == patience);
  }
  desk.load(Way::resident);
  desk.rounds_take(995, 2);  // less than noise
  CHECK(desk.front().patience == 2 * patience);
  desk.load(Way::turned);
  desk.rounds_take(900, 2);
  CHECK(desk.front().patience == 1);
  CHECK(desk.report().notes.empty());
}

TEST_CASE("a plan that loses against on demand a second time makes the planner be asked half as often") {
  MeasuredBook desk(MeasuredBook::options(1));
  const std::uint64_t id = desk.leave();
  CHECK(desk.front().patience == 1);
  desk.way = Way::turned;
  desk.observe(MeasuredBook::mine, quick_times);
  REQUIRE(desk.front().state == PlanState::on_trial);
  CHECK(desk.front().before == nullptr);
  desk.rounds_take(1000, 2);
  desk.demand_takes(id, 500, 2);
  CHECK(desk.front().state == PlanState::left);
  CHECK(desk.front().patience == 2);
  desk.way = Way::resident;
  desk.observe(MeasuredBook::mine, quick_times);
  CHECK(desk.front().state == PlanState::left);
  desk.observe(MeasuredBook::mine, quick_times);
  CHECK(desk.front().state == PlanState::on_trial);
  CHECK(desk.report().plans_remade == 2);
  // The third one wins, at once or after another look at what on demand takes.
  SUBCASE("at once") { desk.rounds_take(200, 2); }
  SUBCASE("after another look") {
    desk.rounds_take(1000, 2);
    REQUIRE(desk.front().checking);
    desk.demand_takes(id, 5000, 2);
  }
  CHECK(desk.front().state == PlanState::settled);
  CHECK(desk.front().patience == 1);
}

TEST_CASE("a plan that was given up is not gone back to when the plan tried in its place loses") {
  MeasuredBook desk;
  desk.settle(1000);
  const FollowablePtr first = desk.front().plan;
  desk.load(Way::swapping);
  const FollowablePtr second = desk.front().plan;
  REQUIRE(desk.front().before == first);
  desk.book.give_up(first, std::make_exception_ptr(std::runtime_error("lost")));
  CHECK(desk.front().plan == second);
  desk.rounds_take(2180, 2);
  CHECK(desk.front().plan == second);
  CHECK(!desk.book.still_chosen("train", first));
}

TEST_CASE("giving up another plan leaves the one to go back to") {
  MeasuredBook desk;
  desk.settle(1000);
  const FollowablePtr first = desk.front().plan;
  desk.make_plan(MeasuredBook::others);
  const FollowablePtr other = desk.front().plan;
  desk.book.used("train", first);
  desk.load(Way::swapping);
  desk.book.give_up(other, std::make_exception_ptr(std::runtime_error("lost")));
  desk.rounds_take(2180, 2);
  CHECK(desk.front().plan == first);
  CHECK(desk.book.still_chosen("train", first));
}

// ---- samples

TEST_CASE("a plan is made anew where its rounds differ from the prediction by more than a quarter") {
  for (const std::int64_t time : {749, 750, 1250, 1251}) {
    CAPTURE(time);
    MeasuredBook desk;
    desk.settle(time);
    desk.sample(usual_times);
    CHECK(desk.report().plans_remade == (time < 750 || time > 1250 ? 1 : 0));
    CHECK(desk.report().sampled_rounds == 1);
  }
}

TEST_CASE("a plan is made anew where it would differ from the prediction with the links known now") {
  for (const bool to_device : {true, false}) {
    CAPTURE(to_device);
    MeasuredBook desk;
    desk.way = Way::swapping;
    desk.settle(2180);
    desk.sample(usual_times);
    CHECK(desk.report().plans_remade == 0);
    (to_device ? desk.machine.h2d : desk.machine.d2h).bytes_per_second /= 4;
    desk.sample(usual_times);
    CHECK(desk.report().plans_remade == 1);
    CHECK(desk.front().predicted == nanoseconds{2180 + 3 * 640});
    CHECK(desk.front().state == PlanState::settled);  // the same plan
  }
}

TEST_CASE("a sampled round teaches durations, and a plan on trial is not judged by it") {
  MeasuredBook desk;
  desk.make_plan();
  desk.sample(quick_times);
  CHECK(desk.front().state == PlanState::on_trial);
  CHECK(desk.front().samples == 0);
  CHECK(desk.report().plans_remade == 0);
  CHECK(desk.report().sampled_rounds == 1);
  const std::optional<Trace> trace = desk.book.trace("train");
  REQUIRE(trace);
  CHECK(trace->operations[0].duration == nanoseconds{90});
  CHECK(trace->operations[1].duration == nanoseconds{10});
  desk.rounds_take(1000, 2);
  desk.sample(quick_times);
  CHECK(desk.front().samples == 0);  // counted from when it was last made
  CHECK(desk.report().plans_remade == 1);
}

TEST_CASE("a sample of something else teaches nothing") {
  MeasuredBook desk;
  desk.settle();
  desk.sample({90});
  desk.sample({90, 10, 10});
  desk.book.sampled(std::make_shared<const CompiledPlan>(*desk.front().plan),
                    std::vector<nanoseconds>(2, nanoseconds{1}), desk.machine);
  CHECK(desk.report().sampled_rounds == 0);
  CHECK(desk.book.trace("train")->operations[0].duration == nanoseconds{900});
}

TEST_CASE("a plan whose iteration is forgotten is not made anew") {
  SchedulerOptions options = MeasuredBook::options();
  options.max_period = 1;
  options.max_sequences = 2;
  MeasuredBook desk(options);
  desk.settle();
  desk.observe(MeasuredBook::others);
  desk.observe(MeasuredBook::third);
  desk.sample(quick_times);
  CHECK(desk.report().sampled_rounds == 1);
  CHECK(desk.report().plans_remade == 0);
  CHECK(desk.front().predicted == nanoseconds{1000});
}

TEST_CASE("a cycle that was left is observed as a whole before the planner is asked again") {
  MeasuredBook desk(MeasuredBook::options(1));
  desk.observe(MeasuredBook::mine);
  desk.observe(MeasuredBook::others);
  const std::uint64_t first = desk.observe(MeasuredBook::mine);
  const std::uint64_t second = desk.observe(MeasuredBook::others);
  for (const std::uint64_t id : {first, second}) desk.book.iteration_took(id, nanoseconds{500}, true);
  desk.rounds_take(2000, 2);
  for (const std::uint64_t id : {first, second}) desk.demand_takes(id, 500, 2);
  REQUIRE(desk.front().state == PlanState::left);
  for (std::uint64_t round = 1; round <= 3; ++round) {
    desk.observe(MeasuredBook::mine);
    CHECK(desk.front().members_sampled == 1);
    CHECK(desk.front().samples == round - 1 - (round == 1 ? 0 : 1));
    desk.observe(MeasuredBook::others);
    CHECK(desk.front().members_sampled == 0);
  }
  CHECK(desk.report().plans_remade == 2);  // after the first sample, and two later
}

TEST_CASE("at most one plan is made anew in an iteration, though several cycles that were left have it") {
  MeasuredBook desk;
  const std::uint64_t first = desk.leave();
  desk.observe(MeasuredBook::others);
  desk.observe(MeasuredBook::mine);
  const std::uint64_t second = desk.observe(MeasuredBook::others);
  REQUIRE(desk.book.cases("train").size() == 2);
  desk.book.iteration_took(second, nanoseconds{500}, true);
  desk.rounds_take(2000, 2);
  for (const std::uint64_t id : {first, second}) desk.demand_takes(id, 500, 2);
  REQUIRE(desk.front().state == PlanState::left);
  REQUIRE(desk.front().members.size() == 2);
  for (int i = 0; i < 8; ++i) {
    desk.observe_untimed(MeasuredBook::mine);
    desk.observe_untimed(MeasuredBook::others);
  }
  desk.observe(MeasuredBook::others);
  CHECK(desk.report().plans_remade == 0);
  desk.observe(MeasuredBook::mine);
  CHECK(desk.report().plans_remade == 1);
  desk.observe(MeasuredBook::mine);
  CHECK(desk.report().plans_remade == 2);
}

TEST_CASE("a cycle of which one iteration is forgotten is not made anew") {
  SchedulerOptions options = MeasuredBook::options(1);
  options.observe = 3;
  options.max_period = 2;
  options.max_sequences = 3;
  MeasuredBook desk(options);
  std::uint64_t first = 0;
  std::uint64_t second = 0;
  for (int i = 0; i < 3; ++i) {
    first = desk.observe(MeasuredBook::mine);
    second = desk.observe(MeasuredBook::others);
  }
  REQUIRE(desk.book.cases("train").size() == 1);
  for (const std::uint64_t id : {first, second}) desk.book.iteration_took(id, nanoseconds{500}, true);
  desk.rounds_take(2000, 2);
  for (const std::uint64_t id : {first, second}) desk.demand_takes(id, 500, 2);
  REQUIRE(desk.front().state == PlanState::left);
  desk.observe(MeasuredBook::third);
  desk.observe(MeasuredBook::fourth);
  for (int i = 0; i < 2; ++i) desk.observe(MeasuredBook::others);
  CHECK(desk.front().members_sampled == 0);
  CHECK(desk.report().plans_remade == 0);
}

TEST_CASE("while a plan is being made elsewhere none is made anew") {
  SchedulerOptions options = MeasuredBook::options();
  options.planning = Planning::deferred;
  options.planning_time = milliseconds{7};
  MeasuredBook desk(options);
  desk.observe();
  desk.observe();
  REQUIRE(desk.book.pending_task() != nullptr);
  desk.book.pending_task()->run_once();
  desk.book.install_finished();
  REQUIRE(desk.book.cases("train").size() == 1);
  desk.rounds_take(1000, 2);
  desk.sample(quick_times);
  const std::shared_ptr<PlanTask> task = desk.book.pending_task();
  REQUIRE(task != nullptr);
  CHECK(task->replaces == desk.front().plan);
  CHECK(task->members == desk.front().members);
  CHECK(task->name == "train");
  CHECK(task->time.limit == milliseconds{7});
  CHECK(!task->time.keeps_to_steps);
  CHECK(task->machine == desk.machine);
  CHECK(task->program.trace.operations[0].duration == nanoseconds{90});
  desk.sample(quick_times);
  CHECK(desk.book.pending_task() == task);
  CHECK(desk.report().plans_remade == 1);
  CHECK(desk.front().predicted == nanoseconds{1000});
}

// ---- plans made anew

TEST_CASE("a planner that has no other plan leaves a note, and is asked half as often") {
  MeasuredBook desk;
  desk.settle();
  desk.way = Way::none;
  desk.sample(quick_times);
  REQUIRE(desk.report().notes.size() == 1);
  CHECK(desk.report().notes[0] == "iteration \"train\" is not planned anew: no idea");
  CHECK(desk.front().patience == 2);
  CHECK(desk.front().predicted == nanoseconds{1000});
}

TEST_CASE("a plan that is the same, or promises nothing, only corrects the prediction") {
  for (const Way way : {Way::resident, Way::turned}) {
    MeasuredBook desk;
    desk.settle();
    const FollowablePtr plan = desk.front().plan;
    desk.way = way;
    desk.sample(quick_times);
    CHECK(desk.report().plans_remade == 1);
    CHECK(desk.front().plan == plan);
    CHECK(desk.front().state == PlanState::settled);
    CHECK(desk.front().predicted == nanoseconds{100});
    CHECK(desk.front().patience == 2);
    CHECK(desk.report().notes.empty());
  }
}

TEST_CASE("a plan that promises more than the one followed is tried") {
  MeasuredBook desk;
  desk.way = Way::swapping;
  desk.settle(2180);
  const FollowablePtr first = desk.front().plan;
  desk.way = Way::resident;
  desk.sample(quick_times);
  CHECK(desk.front().state == PlanState::on_trial);
  CHECK(desk.front().before == first);
  CHECK(desk.front().predicted == nanoseconds{100});
  CHECK(desk.front().patience == 1);
  CHECK(!desk.book.still_chosen("train", first));
}

TEST_CASE("a plan with other commands is tried though it begins with the same bytes in the same places") {
  MeasuredBook desk;
  desk.way = Way::swapping_late;
  desk.settle(2280);
  const FollowablePtr late = desk.front().plan;
  desk.way = Way::swapping;
  desk.sample({10, 100});
  REQUIRE(desk.front().plan != late);
  CHECK(desk.front().state == PlanState::on_trial);
  CHECK(desk.front().plan->plan.initial == late->plan.initial);
  CHECK(desk.front().predicted == nanoseconds{1290});
}

TEST_CASE("where on demand has won a plan is tried only if it promises to be faster than that") {
  for (const std::int64_t demand : {500, 505, 506, 900}) {
    CAPTURE(demand);
    const bool tried = demand > 505;  // by more than one in a hundred
    MeasuredBook desk(MeasuredBook::options(1));
    desk.leave(demand);
    desk.way = Way::turned;
    desk.observe(MeasuredBook::mine, {450, 50});
    CHECK(desk.report().plans_remade == 1);
    CHECK((desk.front().state == PlanState::on_trial) == tried);
    CHECK(desk.front().predicted == nanoseconds{500});
    CHECK(desk.front().patience == (tried ? 1 : 2));
  }
}

TEST_CASE("where on demand has won on other tensors, and is not measured on these, any other plan is tried") {
  MeasuredBook desk(MeasuredBook::options(1));
  desk.leave();
  desk.make_plan(MeasuredBook::again);
  REQUIRE(desk.front().state == PlanState::left);
  CHECK(desk.report().plans[0].on_demand == nanoseconds{0});
  desk.way = Way::turned;
  desk.observe(MeasuredBook::again);
  CHECK(desk.front().state == PlanState::on_trial);
}

TEST_CASE("the plan that lost against on demand is not tried again, whatever it promises") {
  MeasuredBook desk(MeasuredBook::options(1));
  desk.leave();
  desk.observe(MeasuredBook::mine, quick_times);
  CHECK(desk.report().plans_remade == 1);
  CHECK(desk.front().state == PlanState::left);
  CHECK(desk.front().predicted == nanoseconds{100});
  CHECK(desk.front().patience == 2);
}

TEST_CASE("a plan for another budget is judged by what on demand takes under that budget") {
  MeasuredBook desk;
  const std::uint64_t id = desk.check();
  desk.demand_takes(id, 5000, 2);
  REQUIRE(desk.front().state == PlanState::settled);
  desk.machine.device_budget = Bytes{2048};
  desk.book.prepare_budgets({desk.machine.device_budget});
  desk.book.use_budget(desk.machine.device_budget);
  desk.book.plan_for_budget(
      "train", [&] { return desk.machine; }, [](const runtime::Program&) { return true; });
  REQUIRE(desk.front().state == PlanState::on_trial);
  for (int i = 0; i < 5; ++i) desk.book.iteration_took(id, nanoseconds{500}, true);
  desk.rounds_take(1000, 2);
  CHECK(desk.front().checking);  // what took 5000 ns was under the old budget
  desk.demand_takes(id, 400, 2);
  CHECK(desk.front().state == PlanState::left);
}

TEST_CASE("what iterations took under another budget is forgotten, and under the same one kept") {
  for (const bool observed : {true, false}) {
    CAPTURE(observed);
    MeasuredBook desk;
    const std::uint64_t id = desk.make_plan();
    desk.book.iteration_took(id, nanoseconds{500}, observed);
    const Bytes budget = desk.machine.device_budget;
    const auto use = [&](Bytes next) {
      desk.book.prepare_budgets({next});
      desk.book.use_budget(next);
    };
    use(budget);
    CHECK(desk.report().plans[0].on_demand == nanoseconds{500});
    use(Bytes{2048});
    use(budget);
    CHECK(desk.report().plans[0].on_demand == nanoseconds{0});
  }
}
