// SPDX-License-Identifier: Apache-2.0
// Plans that are left again and again while they are on trial: the program branches, and each start costs copies.
#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <swapmm/runtime/book/program_book.hpp>

#include "support/told_book.hpp"

namespace {

using namespace swapmm;
using namespace swapmm::test;
using std::chrono::nanoseconds;

const runtime::IterationLog usual_iteration = updates_from(1);
const runtime::IterationLog other_iteration = updates_from(11, 7);
constexpr std::int64_t first_copy = 64;  // of the first operation's tensor, which an observed iteration waits for

/// An iteration that came when nothing was timed.
runtime::IterationLog untimed(const runtime::IterationLog& log) {
  runtime::IterationLog result = log;
  result.timed = false;
  for (runtime::LogOperation& operation : result.operations) operation.duration = nanoseconds{0};
  return result;
}

/// The iteration is seen twice, so that there is a plan, which is much faster than on demand.
void sees_a_slow_one(ToldBook& told, const runtime::IterationLog& log = usual_iteration) {
  told.book.iteration_took(told.sees(log, 2), nanoseconds{1'000'000}, true);
}

/// The plan that is offered is started, and left in its first round.
void leaves_early(ToldBook& told) {
  const runtime::FollowablePtr plan = told.first_offered();
  REQUIRE(plan != nullptr);
  told.book.used("train", plan);
  told.book.diverged("train", plan);
}

/// The plan that is offered is started, followed for so many iterations, and left. The start's copies take `cost`.
void follows_for(ToldBook& told, std::size_t iterations, nanoseconds cost) {
  const runtime::FollowablePtr plan = told.first_offered();
  REQUIRE(plan != nullptr);
  const auto bytes = static_cast<std::uint64_t>(cost.count());
  told.book.used("train", plan, {Bytes{bytes / 4}, Bytes{bytes - bytes / 4}});
  for (std::size_t i = 0; i < iterations; ++i) {
    told.book.followed("train", plan, 0);
    told.book.round_ended("train", plan, false);
  }
  told.book.left("train", plan);
}

/// How often the usual iteration must be seen until its plan is offered.
std::size_t seen_until_offered(ToldBook& told) {
  for (std::size_t times = 0; times < 200; ++times) {
    if (told.first_offered() != nullptr) return times;
    told.sees(usual_iteration);
  }
  return 200;
}

/// The same after each of so many times that the plan is left.
std::vector<std::size_t> seen_after_each(ToldBook& told, std::size_t times) {
  std::vector<std::size_t> seen;
  for (std::size_t i = 0; i < times; ++i) {
    leaves_early(told);
    seen.push_back(seen_until_offered(told));
  }
  return seen;
}

}  // namespace

TEST_CASE("the more often plans are left early, the more often a cycle must be seen before its plan is started again") {
  ToldBook told;
  sees_a_slow_one(told);
  CHECK(seen_after_each(told, 7) == std::vector<std::size_t>{0, 2, 8, 32, 128, 128, 128});
}

TEST_CASE("a plan without a trial is started again as soon as its cycle is seen") {
  ToldBook told(ToldBook::untried());
  told.sees(usual_iteration, 2);
  CHECK(seen_after_each(told, 6) == std::vector<std::size_t>{0, 1, 0, 1, 0, 1});
}

TEST_CASE(
    "plans that are followed for two rounds each time are started again at once, and those of one round are not") {
  for (const int rounds : {2, 1}) {
    ToldBook told;
    sees_a_slow_one(told);
    const runtime::FollowablePtr plan = told.first_offered();
    for (int i = 0; i < 3; ++i) {
      if (told.first_offered() == nullptr) told.sees(usual_iteration, 2);
      told.follows_rounds(rounds);
      told.book.diverged("train", plan);
    }
    CHECK(told.first_offered() == (rounds == 2 ? plan : nullptr));
  }
}

TEST_CASE("another iteration between them makes the count begin again") {
  ToldBook told;
  sees_a_slow_one(told);
  REQUIRE(seen_after_each(told, 2) == std::vector<std::size_t>{0, 2});
  leaves_early(told);
  told.sees(usual_iteration, 7);
  CHECK(told.first_offered() == nullptr);
  told.sees(other_iteration);
  CHECK(seen_until_offered(told) == 1 + 8);  // the first shows no repetition
}

TEST_CASE("plans of new cycles wait as well, and plans of other names do not") {
  ToldBook told;
  sees_a_slow_one(told);
  REQUIRE(seen_after_each(told, 2) == std::vector<std::size_t>{0, 2});
  leaves_early(told);
  told.sees(other_iteration, 2);
  REQUIRE(told.book.cases("train").size() == 2);
  CHECK(told.first_offered() == nullptr);
  told.sees(other_iteration, 7);
  CHECK(told.first_offered() == nullptr);
  told.sees(other_iteration);
  REQUIRE(told.first_offered() != nullptr);
  CHECK(told.first_offered()->program.trace.operations.size() == 7);
  told.sees(usual_iteration, 2, "test");
  CHECK(told.first_offered("test") != nullptr);
}

TEST_CASE("once a plan was left twice, one that promises to be no faster than on demand is not started") {
  for (const bool faster : {true, false}) {
    ToldBook told;
    const std::uint64_t id = told.sees(usual_iteration, 2);
    const std::int64_t predicted = told.plan()->plan.predicted.iteration.count();
    const std::int64_t as_fast = predicted * 101 / 100 + first_copy;
    told.book.iteration_took(id, nanoseconds{faster ? as_fast + 1 : as_fast}, true);
    CHECK(seen_after_each(told, 1) == std::vector<std::size_t>{0});
    leaves_early(told);
    CHECK(seen_until_offered(told) == (faster ? 2 : 200));
  }
}

TEST_CASE(
    "if a program says that it branches, a plan waits until it could have saved an iteration, or its cycle came "
    "often") {
  for (const bool faster : {true, false}) {
    ToldBook told({.drops = DropRule::proven});
    const std::uint64_t id = told.sees(usual_iteration);
    told.book.iteration_took(id, nanoseconds{1'000'000}, true);
    told.sees(usual_iteration);
    const std::int64_t predicted = told.plan()->plan.predicted.iteration.count();
    REQUIRE(predicted > 100);
    CHECK(seen_until_offered(told) == 1);
    const std::int64_t least = faster ? predicted * 5 / 4 : predicted * 101 / 100;
    for (int i = 0; i < 20; ++i) told.book.iteration_took(id, nanoseconds{least + first_copy}, true);
    CHECK(seen_after_each(told, 1) == std::vector<std::size_t>{faster ? 5U - 1 : 100U - 1});
    leaves_early(told);
    for (std::size_t left = 2; left > 0; --left) {
      const std::vector<OnDemandSummary> reasons = told.report().on_demand;
      REQUIRE(reasons.size() == 1);
      CHECK(reasons[0].reason == OnDemandReason::plan_waits);
      const std::string waits =
          " waits for " + std::to_string(left) + " more iterations of its cycle: the program branches";
      CHECK(reasons[0].why ==
            "the plan by belady" + (faster ? waits : " promises no gain over on demand, and plans were left early"));
      told.sees(usual_iteration);
    }
    CHECK(seen_until_offered(told) == (faster ? 0 : 200));
    CHECK(told.report().on_demand.size() == (faster ? 0U : 1U));
  }
}

TEST_CASE("if there is only evidence that a program branches, a plan waits less, until one was left") {
  ToldBook told;
  told.book.prove_drops("a test says so");
  told.sees(usual_iteration, 2);
  CHECK(seen_until_offered(told) == 32);
  CHECK(seen_after_each(told, 1) == std::vector<std::size_t>{100 - 32});
}

TEST_CASE("a plan for a cycle of which a plan has won its trial does not wait, with another budget, say") {
  for (const bool has_won : {true, false}) {
    ToldBook told({.drops = DropRule::proven});
    told.sees(usual_iteration, 2);
    CHECK(seen_until_offered(told) == 100);
    if (has_won) {
      const runtime::FollowablePtr plan = told.first_offered();
      told.book.used("train", plan);
      for (int i = 0; i < 10; ++i) told.book.round_took(plan, nanoseconds{900});
      REQUIRE(told.book.cases("train").front().state == PlanState::settled);
    }
    told.change_budget(Bytes{320});
    told.plan_for_budget();
    REQUIRE(told.book.cases("train").size() == 1);
    CHECK((told.first_offered() != nullptr) == has_won);
  }
}

TEST_CASE("a round on demand that was not observed counts as it is") {
  ToldBook told({.drops = DropRule::proven});
  const std::uint64_t id = told.sees(usual_iteration, 2);
  const nanoseconds predicted = told.plan()->plan.predicted.iteration;
  const nanoseconds demand = predicted + nanoseconds{first_copy};
  told.book.iteration_took(id, demand, true);
  told.sees(usual_iteration, 20);
  CHECK(told.first_offered() == nullptr);
  REQUIRE(demand.count() / first_copy < 21);
  told.book.iteration_took(id, demand, false);
  told.sees(usual_iteration);
  CHECK(told.first_offered() != nullptr);
}

TEST_CASE("a cycle is seen often in a row or not, and one of two iterations in twice as many") {
  ToldBook told({.drops = DropRule::proven});
  told.sees(usual_iteration, 62);
  told.sees(other_iteration);
  told.sees(usual_iteration, 40);
  CHECK(told.first_offered() == nullptr);
  told.sees(usual_iteration);
  CHECK(told.first_offered() != nullptr);
  ToldBook two({.drops = DropRule::proven});
  for (int i = 0; i < 4; ++i) two.sees(i % 2 == 0 ? usual_iteration : other_iteration);
  for (int i = 0; i < 200; ++i) {
    REQUIRE(two.book.cases("train").size() == 1);
    CHECK(two.first_offered() == nullptr);
    two.sees(i % 2 == 0 ? usual_iteration : other_iteration);
  }
  CHECK(two.first_offered() != nullptr);
}

TEST_CASE("plans that turn out to be faster than on demand are trusted sooner") {
  ToldBook told;
  const std::uint64_t id = told.sees(usual_iteration, 2);
  told.book.iteration_took(id, nanoseconds{1'000'000}, true);
  REQUIRE(seen_after_each(told, 4).back() == 32);
  const runtime::FollowablePtr plan = told.first_offered();
  REQUIRE(plan != nullptr);
  for (int i = 0; i < 10; ++i) told.book.round_took(plan, nanoseconds{900});
  REQUIRE(told.book.cases("train").front().state == PlanState::settled);
  // Half as wary: the plan of another cycle is offered once the cycle was seen two times more than twice.
  told.sees(other_iteration, 3);
  CHECK(told.first_offered() == plan);
  told.sees(other_iteration);
  CHECK(told.first_offered() != plan);
}

namespace {

/// How often that iteration must be seen until times are wanted.
std::size_t seen_until_timed(ToldBook& told, const runtime::IterationLog& log) {
  for (std::size_t times = 0; times < 200; ++times) {
    if (told.book.wants_times("train")) return times;
    told.sees(untimed(log));
  }
  return 200;
}

}  // namespace

TEST_CASE("while a plan waits because it promises nothing, no iteration of its cycle is timed") {
  ToldBook told({.drops = DropRule::proven});
  told.sees(usual_iteration);
  CHECK(told.book.wants_times("train"));
  const std::uint64_t id = told.sees(usual_iteration);
  CHECK(told.book.wants_times("train"));  // how long an iteration takes is not known
  told.book.iteration_took(id, nanoseconds{1}, true);
  CHECK_FALSE(told.book.wants_times("train"));
  for (int i = 0; i < 100; ++i) {
    CHECK(told.first_offered() == nullptr);
    told.sees(untimed(usual_iteration));
  }
  CHECK(told.first_offered() != nullptr);
}

TEST_CASE("cycles of programs that branch are timed only once they were seen as often as their plans must wait") {
  ToldBook told;
  sees_a_slow_one(told);
  CHECK(told.book.wants_times("train"));
  REQUIRE(seen_after_each(told, 2) == std::vector<std::size_t>{0, 2});
  leaves_early(told);
  CHECK_FALSE(told.book.wants_times("train"));
  CHECK(seen_until_timed(told, updates_from(21)) == 1 + 1 + 8);  // one shows no repetition
  // Two are timed. Each cycle that is timed counts as one that was left early, until a plan is followed for long.
  told.sees(updates_from(21));
  CHECK(told.book.wants_times("train"));
  told.sees(updates_from(21));
  CHECK_FALSE(told.book.wants_times("train"));
  CHECK(seen_until_timed(told, updates_from(31)) == 1 + 1 + 32);
}

namespace {

using Outlook = runtime::ProgramBook::Outlook;

/// An iteration whose times are not known when it ends.
runtime::IterationLog late(const runtime::IterationLog& log) {
  runtime::IterationLog result = untimed(log);
  result.timed = true;
  result.times_are_late = true;
  return result;
}

/// What the book needs for the iteration, as text.
std::string needs(const ToldBook& told, const runtime::IterationLog& log) {
  const Outlook outlook = told.book.outlook("train", late(log));
  return std::string(outlook.plans ? "plans" : "") + (outlook.waits ? " waits" : "");
}

/// `count` different iterations, none of which has come before.
void sees_others(ToldBook& told, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) told.sees(updates_from(100 + 10 * i));
}

const std::vector<nanoseconds> late_times(6, nanoseconds{700});

}  // namespace

TEST_CASE("the times of the first two iterations are waited for, and then only those of a cycle that is planned") {
  ToldBook told;
  CHECK(needs(told, usual_iteration) == "plans waits");
  sees_others(told, 1);
  CHECK(needs(told, usual_iteration) == "plans waits");
  sees_others(told, 2);
  CHECK(needs(told, usual_iteration).empty());
  CHECK(told.sees(late(usual_iteration)) != 0);
  CHECK(needs(told, other_iteration).empty());
  CHECK(needs(told, usual_iteration) == "plans waits");
}

TEST_CASE("what needs times for another reason than a new cycle waits for them in any case") {
  ToldBook told;
  sees_others(told, 3);
  REQUIRE(needs(told, usual_iteration).empty());
  runtime::IterationLog broken = late(usual_iteration);
  broken.broken = true;
  CHECK(told.book.outlook("train", broken).waits);  // it is rare, and has nothing to come
  CHECK(told.book.outlook("train", untimed(usual_iteration)).plans);
  CHECK(told.book.outlook("another name", late(usual_iteration)).waits);
  told.book.tells_no_times();
  CHECK(needs(told, usual_iteration) == "plans waits");
}

TEST_CASE("a plan of late times is made once they have come, of the times that came") {
  ToldBook told({.drops = DropRule::proven});
  const std::uint64_t id = told.sees(late(usual_iteration));
  CHECK(needs(told, usual_iteration).empty());  // a cycle that may end soon
  CHECK(told.sees(late(usual_iteration)) == id);
  CHECK(told.planner_asked == 0);
  CHECK(told.book.trace("train")->operations[0].duration == nanoseconds{0});
  told.book.times_came(id, late_times);
  CHECK(told.book.trace("train")->operations[5].duration == nanoseconds{700});
  CHECK(needs(told, usual_iteration) == "plans");
  told.sees(late(usual_iteration));
  REQUIRE(told.planner_asked == 1);
  CHECK(told.plan()->observed().trace.operations[5].duration == nanoseconds{700});
  CHECK(needs(told, usual_iteration).empty());
}

TEST_CASE("a program that says that it branches waits for times when it has done the same often in a row") {
  ToldBook told({.drops = DropRule::proven});
  sees_others(told, 1);
  for (int i = 0; i < 7; ++i) {
    CHECK(needs(told, usual_iteration).empty());
    told.sees(late(usual_iteration));
  }
  CHECK(needs(told, usual_iteration) == "plans waits");
  told.sees(late(other_iteration));
  told.sees(late(usual_iteration));
  CHECK(needs(told, usual_iteration).empty());
  for (int i = 0; i < 7; ++i) told.sees(late(i % 2 == 0 ? other_iteration : usual_iteration));
  CHECK(needs(told, usual_iteration) == "plans waits");
}

TEST_CASE("late times of an iteration that is forgotten change nothing, and unknown ones nothing that is known") {
  ToldBook told({.max_sequences = 4, .drops = DropRule::proven});
  const std::uint64_t id = told.sees(late(usual_iteration));
  sees_others(told, 4);
  told.book.times_came(id, late_times);
  const std::uint64_t known = told.sees(usual_iteration);
  told.book.times_came(known, std::vector<nanoseconds>(6, nanoseconds{0}));
  CHECK(told.book.trace("train")->operations[0].duration == nanoseconds{100});
}

TEST_CASE("a plan whose starts cost more than it saves waits until a start could have been paid") {
  ToldBook told(ToldBook::untried());
  sees_a_slow_one(told);
  const nanoseconds saved = nanoseconds{1'000'000} - told.plan()->plan.predicted.iteration;
  follows_for(told, 10, 10 * saved);
  CHECK(seen_until_offered(told) == 0);
  follows_for(told, 9, 10 * saved);
  CHECK(seen_until_offered(told) == 0);  // it may have been chance
  for (const std::size_t times : {10U, 10U, 32U}) {
    follows_for(told, 9, 10 * saved);
    CHECK(told.report().on_demand.at(0).why.find("its last starts cost more than they saved") != std::string::npos);
    CHECK(seen_until_offered(told) == times);
    follows_for(told, 0, nanoseconds{0});  // says nothing
    CHECK(seen_until_offered(told) == 0);
  }
  follows_for(told, 10, 10 * saved);
  CHECK(seen_until_offered(told) == 0);
}

TEST_CASE("a plan that saves nothing is not started again once starts have cost something, until on demand is slower") {
  ToldBook told(ToldBook::untried());
  const std::uint64_t id = told.sees(usual_iteration, 2);
  const nanoseconds predicted = told.plan()->plan.predicted.iteration;
  told.book.iteration_took(id, predicted, false);
  for (int i = 0; i < 4; ++i) {
    follows_for(told, 100, 100 * (predicted / 8));  // little beside the iterations
    CHECK(seen_until_offered(told) == 0);
  }
  follows_for(told, 100, 100 * (predicted / 8) + nanoseconds{1});
  CHECK(seen_until_offered(told) == 0);
  follows_for(told, 100, 100 * (predicted / 8) + nanoseconds{1});
  CHECK(seen_until_offered(told) == 200);
  for (int i = 0; i < 100; ++i) told.book.iteration_took(id, nanoseconds{1'000'000}, false);
  CHECK(seen_until_offered(told) == 3);  // the first finds out that it saves something
}

TEST_CASE("as long as times on demand are unknown, an iteration that follows a plan saves as much as it takes") {
  for (const int cost : {3, 4}) {
    ToldBook told(ToldBook::untried());
    told.sees(usual_iteration, 2);
    const nanoseconds predicted = told.plan()->plan.predicted.iteration;
    for (int i = 0; i < 2; ++i) follows_for(told, 3, cost * predicted);
    CHECK(seen_until_offered(told) == (cost == 3 ? 0 : 4));
  }
}
