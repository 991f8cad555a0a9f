// SPDX-License-Identifier: Apache-2.0
// When a program book asks for times, told to it as plain data: no device runs.
#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <swapmm/base/text/figures.hpp>

#include "support/measured_book.hpp"
#include "support/told_book.hpp"

namespace {

using namespace swapmm;
using namespace swapmm::runtime;
using namespace swapmm::test;
using std::chrono::nanoseconds;

bool is_nothing(ProgramBook::Measures measures) { return !measures.round && !measures.sample; }

}  // namespace

TEST_CASE("of a plan on trial all rounds but the first two are timed as a whole, and as many decide") {
  for (std::size_t trial = 1; trial <= 6; ++trial) {
    CAPTURE(trial);
    SchedulerOptions options = MeasuredBook::options(0);
    options.trial_iterations = trial;
    MeasuredBook desk(options);
    desk.make_plan();
    const std::size_t not_counted = trial == 1 ? 0 : trial == 2 ? 1 : 2;
    for (std::size_t round = 0; round < trial; ++round) {
      CAPTURE(round);
      CHECK(desk.measures().round == (round >= not_counted));
      CHECK(!desk.measures().sample);
      desk.end_rounds(1);
    }
    for (std::size_t timed = not_counted; timed < trial; ++timed) {
      CHECK(desk.front().state == PlanState::on_trial);
      desk.rounds_take(1000, 1);
    }
    CHECK(desk.front().state == PlanState::settled);
  }
}

TEST_CASE("of eight rounds by a settled plan the last is sampled, and the four before it are timed as a whole") {
  MeasuredBook desk;
  desk.settle();
  for (int sample = 0; sample < 3; ++sample) {
    for (std::size_t round = 0; round < 8; ++round) {
      CAPTURE(round);
      CHECK(desk.front().rounds == round);
      CHECK(desk.measures().round == (round >= 3 && round < 7));
      CHECK(desk.measures().sample == (round == 7));
      desk.book.round_ended("train", desk.front().plan, round == 7);
    }
  }
  // A sample that did not come about is made up for.
  desk.end_rounds(9);
  CHECK(desk.measures().sample);
  CHECK(!desk.measures().round);
}

TEST_CASE("where on demand has won one iteration in eight is observed, and the four before it are timed as a whole") {
  MeasuredBook desk;
  desk.leave();
  for (int sample = 0; sample < 2; ++sample) {
    for (std::size_t round = 0; round < 8; ++round) {
      CAPTURE(round);
      CHECK(desk.front().rounds == round);
      CHECK(desk.measures().round == (round >= 3 && round < 7));
      CHECK(!desk.measures().sample);
      CHECK(desk.book.wants_times("train") == (round == 7));
      desk.observe(MeasuredBook::mine, usual_times, round == 7);
    }
  }
  CHECK(desk.report().plans_remade == 1);  // the first time was for nothing: the second comes too early
  // One that was to be observed and was not is made up for.
  for (int round = 0; round < 9; ++round) desk.observe_untimed();
  CHECK(desk.front().rounds == 9);
  CHECK(desk.book.wants_times("train"));
  desk.observe();
  CHECK(desk.front().rounds == 0);
  // One that was observed though nobody asked for it is no sample.
  const std::size_t samples = desk.front().samples;
  desk.observe();
  CHECK(desk.front().rounds == 1);
  CHECK(desk.front().samples == samples);
}

TEST_CASE("with sample_every = 0 nothing is timed but trials") {
  for (const bool wins : {true, false}) {
    CAPTURE(wins);
    MeasuredBook desk(MeasuredBook::options(0));
    if (wins) {
      desk.settle();
    } else {
      desk.leave();
    }
    for (int round = 0; round < 20; ++round) {
      CHECK(is_nothing(desk.measures()));
      if (wins) {
        desk.end_rounds(1);
      } else {
        CHECK(!desk.book.wants_times("train"));
        desk.observe(MeasuredBook::mine, usual_times, round % 2 == 0);
      }
    }
    CHECK(desk.front().rounds == 20);
    CHECK(desk.report().plans_remade == 0);
  }
}

TEST_CASE("iterations are observed with times unless on demand has won or is being measured") {
  MeasuredBook desk;
  CHECK(desk.book.wants_times("train"));
  desk.observe();
  CHECK(desk.book.wants_times("train"));
  const std::uint64_t id = desk.observe();
  REQUIRE(desk.front().state == PlanState::on_trial);
  CHECK(desk.book.wants_times("train"));
  desk.book.iteration_took(id, nanoseconds{500}, true);
  desk.rounds_take(1000, 2);
  REQUIRE(desk.front().checking);
  CHECK(!desk.book.wants_times("train"));
  desk.demand_takes(id, 500, 2);
  REQUIRE(desk.front().state == PlanState::left);
  CHECK(!desk.book.wants_times("train"));
  MeasuredBook settled;
  settled.settle();
  CHECK(settled.book.wants_times("train"));
}

TEST_CASE("a program whose iterations are part of no cycle is not timed, until there is one") {
  ToldBook told(ToldBook::untried());
  const auto sees_untimed = [&](std::uint64_t serial) {
    runtime::IterationLog log = updates_from(serial);
    log.timed = false;
    for (auto& operation : log.operations) operation.duration = nanoseconds{0};
    return told.sees(log);
  };
  for (std::uint64_t i = 1; i <= 8; ++i) {
    CHECK(told.book.wants_times("train"));
    told.sees(updates_from(100 * i));
  }
  CHECK(!told.book.wants_times("train"));
  CHECK(told.book.wants_times("evaluate"));
  sees_untimed(900);
  CHECK(!told.book.wants_times("train"));
  sees_untimed(900);
  CHECK(told.book.wants_times("train"));
  CHECK(told.book.plans_made() == 0);
  told.sees(updates_from(900));
  CHECK(told.book.wants_times("train"));
  told.sees(updates_from(900));
  CHECK(told.book.plans_made() == 1);

  // The same beside a plan: an iteration that follows it is not new.
  const auto many_new = [&](std::uint64_t from) {
    for (std::uint64_t i = 0; i < 8; ++i) told.sees(updates_from(1000 * from + 100 * i));
  };
  many_new(1);
  CHECK(!told.book.wants_times("train"));
  told.follows_rounds(1);
  CHECK(told.book.wants_times("train"));
  many_new(2);
  CHECK(!told.book.wants_times("train"));
  told.sees(updates_from(2000));  // known, and no cycle
  CHECK(!told.book.wants_times("train"));
}

TEST_CASE("a cycle of several iterations is timed once it has come twice without times") {
  ToldBook told(ToldBook::untried());
  const auto sees = [&](std::uint64_t serial) {
    runtime::IterationLog log = updates_from(serial);
    log.timed = told.book.wants_times("train");
    if (!log.timed) {
      for (auto& operation : log.operations) operation.duration = nanoseconds{0};
    }
    told.sees(log);
    return log.timed;
  };
  for (std::uint64_t i = 1; i <= 8; ++i) CHECK(sees(100 * i));
  std::size_t timed = 0;
  for (int turn = 0; turn < 2; ++turn) {
    for (const std::uint64_t serial : {900U, 1000U, 1100U}) timed += sees(serial) ? 1 : 0;
  }
  CHECK(timed == 0);
  for (int turn = 0; turn < 2; ++turn) {
    for (const std::uint64_t serial : {900U, 1000U, 1100U}) timed += sees(serial) ? 1 : 0;
  }
  CHECK(timed == 6);
  CHECK(told.book.plans_made() == 1);
}

TEST_CASE("iterations that come again by chance are no reason to time others") {
  ToldBook told(ToldBook::untried());
  for (std::uint64_t i = 1; i <= 8; ++i) told.sees(updates_from(100 * i));
  REQUIRE(!told.book.wants_times("train"));
  told.sees(updates_from(800));  // a cycle of one iteration, with the last one
  CHECK(told.book.plans_made() == 1);
  CHECK(!told.book.wants_times("train"));
}

TEST_CASE("the host waits for times on demand after as many rounds as a trial has, or when no more can be timed") {
  MeasuredBook desk;
  CHECK(!desk.book.awaits_times("train", true));
  desk.make_plan();
  CHECK(!desk.book.awaits_times("train", true));
  MeasuredBook checked;
  const std::uint64_t id = checked.check();
  for (std::size_t round = 0; round < 4; ++round) {
    CAPTURE(round);
    CHECK(!checked.book.awaits_times("train", false));
    CHECK(checked.book.awaits_times("train", true));
    checked.observe_untimed();
  }
  CHECK(checked.front().rounds == 4);
  CHECK(checked.book.awaits_times("train", false));
  checked.demand_takes(id, 500, 2);
  CHECK(!checked.book.awaits_times("train", true));
}

TEST_CASE("the rounds of a cycle on demand are as many iterations as it has") {
  MeasuredBook desk;
  desk.observe(MeasuredBook::mine);
  desk.observe(MeasuredBook::others);
  const std::uint64_t first = desk.observe(MeasuredBook::mine);
  const std::uint64_t second = desk.observe(MeasuredBook::others);
  REQUIRE(desk.front().members.size() == 2);
  for (const std::uint64_t id : {first, second}) desk.book.iteration_took(id, nanoseconds{500}, true);
  desk.rounds_take(2000, 2);
  REQUIRE(desk.front().checking);
  for (int i = 0; i < 7; ++i) {
    desk.observe_untimed(i % 2 == 0 ? MeasuredBook::mine : MeasuredBook::others);
    CHECK(!desk.book.awaits_times("train", false));
  }
  desk.observe_untimed(MeasuredBook::others);
  CHECK(desk.book.awaits_times("train", false));
  // Both members decide.
  desk.demand_takes(first, 500, 5);
  desk.demand_takes(second, 500, 1);
  CHECK(desk.front().checking);
  desk.demand_takes(second, 500, 1);
  CHECK(desk.front().state == PlanState::left);
  CHECK(desk.report().plans[0].on_demand == nanoseconds{1000});
}

TEST_CASE("rounds count for the plan that was followed, and iterations on demand for cases of theirs without a plan") {
  MeasuredBook desk;
  desk.leave();
  desk.make_plan(MeasuredBook::others);
  const auto cases = desk.book.cases("train");
  REQUIRE(cases.size() == 2);
  const PlanCase& tried = cases[0];
  const PlanCase& left = cases[1];
  REQUIRE(left.state == PlanState::left);
  CHECK(left.rounds == 0);  // the other program was observed meanwhile
  desk.end_rounds(3);
  CHECK(tried.rounds == 3);
  CHECK(left.rounds == 0);
  desk.observe_untimed(MeasuredBook::mine);
  CHECK(tried.rounds == 3);
  CHECK(left.rounds == 1);
  desk.observe_untimed(MeasuredBook::others);  // by mischance not by its plan
  CHECK(tried.rounds == 3);
  CHECK(left.rounds == 1);
}

// ---- iterations that come unexpectedly

TEST_CASE("where another program comes while nothing is timed, its times are asked for before it is planned") {
  SchedulerOptions options = MeasuredBook::options();
  options.observe = 1;
  MeasuredBook desk(options);
  const std::uint64_t id = desk.observe();
  desk.book.iteration_took(id, nanoseconds{500}, true);
  desk.rounds_take(1000, 2);
  desk.demand_takes(id, 500, 2);
  REQUIRE(desk.front().state == PlanState::left);
  REQUIRE(!desk.book.wants_times("train"));

  desk.observe_untimed(MeasuredBook::others);
  CHECK(desk.book.cases("train").size() == 1);
  CHECK(desk.book.wants_times("train"));
  SUBCASE("what on demand runs as ever gives no times of the other one") {
    desk.observe(MeasuredBook::mine);
    CHECK(desk.book.wants_times("train"));
  }
  SUBCASE("an iteration without times gives none either") {
    desk.observe_untimed(MeasuredBook::mine);
    CHECK(desk.book.wants_times("train"));
  }
  SUBCASE("once they are there nothing more is asked for") {
    desk.observe(MeasuredBook::others);
    REQUIRE(desk.book.cases("train").size() == 2);
    CHECK(desk.front().plan->plan.predicted.iteration == nanoseconds{1000});
    const std::uint64_t second = desk.front().members[0];
    desk.book.iteration_took(second, nanoseconds{500}, true);
    desk.rounds_take(1000, 2);
    desk.demand_takes(second, 500, 2);
    REQUIRE(desk.front().state == PlanState::left);
    CHECK(!desk.book.wants_times("train"));
  }
}

TEST_CASE(
    "times of an unexpected program are asked for until an iteration with times comes, whichever program has them") {
  SchedulerOptions options = MeasuredBook::options();
  options.observe = 4;
  MeasuredBook desk(options);
  std::uint64_t id = 0;
  for (int i = 0; i < 4; ++i) id = desk.observe();
  desk.book.iteration_took(id, nanoseconds{500}, true);
  desk.rounds_take(1000, 2);
  desk.demand_takes(id, 500, 2);
  REQUIRE(desk.front().state == PlanState::left);
  desk.observe_untimed(MeasuredBook::others);
  REQUIRE(desk.book.wants_times("train"));
  desk.observe(MeasuredBook::others);
  CHECK(!desk.book.wants_times("train"));
  desk.observe_untimed(MeasuredBook::third);
  CHECK(desk.book.wants_times("train"));
  desk.observe_untimed(MeasuredBook::others);  // its times are known, those of the third are not
  CHECK(desk.book.wants_times("train"));
  desk.observe(MeasuredBook::third);
  CHECK(!desk.book.wants_times("train"));
}

TEST_CASE("a program is observed with times though on demand has won for another one, where its plan is settled") {
  MeasuredBook desk;
  desk.settle();
  const std::uint64_t id = desk.check(MeasuredBook::others);
  desk.demand_takes(id, 500, 2);
  REQUIRE(desk.front().state == PlanState::left);
  REQUIRE(!desk.book.wants_times("train"));
  desk.observe_untimed(MeasuredBook::third);
  REQUIRE(desk.book.wants_times("train"));
  desk.observe(MeasuredBook::mine);  // has a plan that is followed: it came on demand by mischance
  CHECK(!desk.book.wants_times("train"));
}

TEST_CASE("an iteration whose times are not known stands between those before it and those after it") {
  MeasuredBook desk;
  desk.leave();
  desk.observe_untimed(MeasuredBook::others);
  desk.observe(MeasuredBook::others);
  desk.observe_untimed(MeasuredBook::third);
  desk.observe(MeasuredBook::others);
  CHECK(desk.book.cases("train").size() == 1);  // not twice in a row
  desk.observe(MeasuredBook::others);
  CHECK(desk.book.cases("train").size() == 2);
}

// ---- devices without times

TEST_CASE("on a device without times no plan is compared, and those on trial stay") {
  MeasuredBook desk;
  desk.leave();
  desk.check(MeasuredBook::others);
  desk.make_plan(MeasuredBook::third);
  desk.book.tells_no_times();
  const auto cases = desk.book.cases("train");
  REQUIRE(cases.size() == 3);
  for (const PlanCase& known : cases.first(2)) {
    CHECK(known.state == PlanState::settled);
    CHECK(!known.checking);
    CHECK(known.choice() == known.plan);
  }
  CHECK(cases[2].state == PlanState::left);
  for (int round = 0; round < 8; ++round) {
    CHECK(is_nothing(desk.measures()));
    desk.end_rounds(1);
  }
  desk.make_plan(MeasuredBook::fourth);
  CHECK(desk.front().state == PlanState::settled);
  CHECK(is_nothing(desk.measures()));
}

TEST_CASE("on a device without times the host never waits for them") {
  MeasuredBook desk;
  desk.check();
  REQUIRE(desk.book.awaits_times("train", true));
  desk.book.tells_no_times();
  CHECK(!desk.book.awaits_times("train", true));
}
