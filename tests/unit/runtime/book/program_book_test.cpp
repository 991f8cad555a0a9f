// SPDX-License-Identifier: Apache-2.0
// What a program book makes of the iterations that it is told of.
#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/runtime/book/program_book.hpp>

#include "support/failing_new.hpp"
#include "support/small_program.hpp"
#include "support/told_book.hpp"

namespace {

using namespace swapmm;
using namespace swapmm::test;
using runtime::CompiledPlan;
using runtime::FollowablePtr;
using runtime::IterationLog;
using runtime::LogAccess;
using runtime::PlanCase;
using runtime::PlanTask;
using std::chrono::nanoseconds;

using Texts = std::vector<std::string>;

/// A cycle of one of these has the same program, whatever the tensor.
IterationLog update_of(std::uint64_t serial) { return updates_of_tensors({serial}); }

std::uint64_t allocations_of_observing(ToldBook& told, const IterationLog& log) {
  IterationLog taken = log;
  const std::uint64_t before = allocations();
  (void)told.book.observed("train", std::move(taken), told.machine);
  return allocations() - before;
}

}  // namespace

// ---- cycles

TEST_CASE("cycles of other iterations or of another length each get a plan, a cycle that begins elsewhere does not") {
  ToldBook told(ToldBook::untried());
  const std::uint64_t one = told.sees(update_of(1), 2);
  CHECK(told.book.plans_made() == 1);
  told.sees(update_of(1));
  const std::uint64_t two = told.sees(update_of(2));
  told.sees(update_of(1));
  CHECK(told.book.plans_made() == 1);
  told.sees(update_of(2));
  REQUIRE(told.book.plans_made() == 2);
  CHECK(told.book.cases("train")[0].members == std::vector{one, two});
  told.fails();
  std::uint64_t three = 0;
  for (int i = 0; i < 2; ++i) {
    three = told.sees(update_of(3));
    told.sees(update_of(2));
  }
  REQUIRE(told.book.plans_made() == 3);
  CHECK(told.book.cases("train")[0].members == std::vector{three, two});
  told.fails();
  for (int i = 0; i < 2; ++i) {
    told.sees(update_of(2));
    told.sees(update_of(1));
  }
  CHECK(told.book.plans_made() == 3);
}

TEST_CASE("iterations that follow a plan are members of later cycles") {
  ToldBook told(ToldBook::untried());
  const std::uint64_t one = told.sees(update_of(1), 2);
  told.follows_rounds(3);
  const std::uint64_t two = told.sees(update_of(2));
  told.follows_rounds(1);
  CHECK(told.book.plans_made() == 1);
  told.sees(update_of(2));
  REQUIRE(told.book.plans_made() == 2);
  CHECK(told.book.cases("train")[0].members == std::vector{one, two});

  // Each member of a longer cycle counts as itself.
  const FollowablePtr cycle = told.book.cases("train")[0].plan;
  told.book.used("train", cycle);
  told.book.followed("train", cycle, 0);
  told.book.followed("train", cycle, 1);
  const std::uint64_t three = told.sees(update_of(3));
  told.book.followed("train", cycle, 0);
  told.book.followed("train", cycle, 1);
  told.sees(update_of(3));
  REQUIRE(told.book.plans_made() == 3);
  CHECK(told.book.cases("train")[0].members == std::vector{one, two, three});
}

TEST_CASE("iterations that follow a plan that is not known any more are a gap between those before and after them") {
  ToldBook told(ToldBook::untried());
  told.sees(update_of(1), 2);
  const FollowablePtr replaced = told.plan();
  told.book.load("train", told.plan_by("on-demand", update_of(1)));
  told.sees(update_of(2));
  told.book.followed("train", replaced, 0);
  told.sees(update_of(2));
  CHECK(told.book.plans_made() == 1);
  told.sees(update_of(2));
  CHECK(told.book.plans_made() == 2);
}

TEST_CASE("a sequence whose plan is followed is not the one that is forgotten") {
  SchedulerOptions options = ToldBook::untried();
  options.max_period = 1;
  options.max_sequences = 2;
  ToldBook told(options);
  const std::uint64_t one = told.sees(update_of(1), 2);
  const std::uint64_t two = told.sees(update_of(2));
  told.follows_rounds(1);
  told.sees(update_of(3));  // in the place of the second
  CHECK(told.sees(update_of(1)) == one);
  CHECK(told.sees(update_of(2)) != two);
}

// ---- another iteration with the same beginning

TEST_CASE("a plan that was started twice for another iteration is offered again once its cycle was seen again") {
  ToldBook told({.observe = 3, .trial_iterations = 0});
  told.sees(update_of(1), 3);
  const FollowablePtr first = told.plan();
  const auto diverges_after_a_round = [&] {
    told.follows_rounds(1);
    told.book.diverged("train", first);
    told.sees(update_of(2));
  };
  diverges_after_a_round();
  CHECK(told.first_offered() == first);
  told.diverges_into(update_of(3));
  CHECK(told.first_offered() == first);
  told.diverges_into(update_of(4));
  CHECK(told.first_offered() == nullptr);
  told.sees(update_of(1), 2);
  CHECK(told.first_offered() == nullptr);
  told.sees(update_of(1));
  CHECK(told.first_offered() == first);

  told.diverges_into(update_of(3));
  diverges_after_a_round();  // which shows that the start was right
  told.diverges_into(update_of(4));
  CHECK(told.first_offered() == first);
}

TEST_CASE("of two plans with the same beginning, that of the cycle that was seen last is offered first") {
  ToldBook told(ToldBook::untried());
  told.sees(update_of(1), 2);
  const FollowablePtr first = told.plan();
  told.diverges_into(update_of(2));
  told.diverges_into(update_of(2));
  const FollowablePtr second = told.first_offered();
  CHECK(second != first);
  told.follows_rounds(2);
  told.diverges_into(update_of(1));
  CHECK(told.first_offered() == second);
  told.diverges_into(update_of(1));
  CHECK(told.first_offered() == first);
  CHECK(told.book.plans_made() == 2);
}

TEST_CASE("a cycle is planned once it was seen as often as the options say") {
  ToldBook told({.observe = 3, .max_period = 2, .trial_iterations = 0});
  for (int i = 0; i < 2; ++i) {
    told.sees(update_of(1));
    told.sees(update_of(2));
  }
  told.sees(update_of(1));
  CHECK(told.book.plans_made() == 0);
  told.sees(update_of(2));
  CHECK(told.book.plans_made() == 1);
}

TEST_CASE(
    "nothing is learned from an iteration that failed, has no operation or has no memory, and no cycle spans it") {
  IterationLog failed = update_of(1);
  failed.broken = true;
  for (const bool has_memory : {true, false}) {
    for (const IterationLog& odd : {failed, updates_of_tensors({}), update_of(1)}) {
      const bool is_odd = odd.broken || odd.operations.empty() || !has_memory;
      ToldBook told(ToldBook::untried());
      told.sees(update_of(1));
      told.machine.device_budget = Bytes{has_memory ? 256U : 0U};
      CHECK((told.sees(odd) == 0) == is_odd);
      told.machine.device_budget = Bytes{256};
      if (is_odd) {
        told.sees(update_of(1));
        CHECK(told.book.plans_made() == 0);
        told.sees(update_of(1));
      }
      CHECK(told.book.plans_made() == 1);
    }
  }
}

TEST_CASE("of an iteration whose cycle is known no program is made again, however long it is") {
  std::vector<std::uint64_t> allocated;
  for (const std::size_t operations : {6U, 24U}) {
    for (const std::size_t observe : {2U, 100U}) {  // by a book that knows its cycle, and by one that does not yet
      ToldBook told({.observe = observe, .trial_iterations = 0});
      const IterationLog log = updates_from(1, operations);
      told.sees(log, 3);
      CHECK(told.book.plans_made() == (observe == 2 ? 1U : 0U));
      allocated.push_back(allocations_of_observing(told, log));
    }
  }
  CHECK(allocated == std::vector<std::uint64_t>(4, allocated.front()));
}

TEST_CASE("the sequence that was not seen for longest is forgotten with its cycles, and the others stay") {
  ToldBook told({.max_period = 1, .max_sequences = 2, .trial_iterations = 0});
  const std::uint64_t one = told.sees(update_of(1), 2);
  const std::uint64_t two = told.sees(update_of(2), 2);
  CHECK(told.book.plans_made() == 2);
  CHECK(told.sees(update_of(1)) == one);
  const std::uint64_t three = told.sees(update_of(3));
  CHECK(told.sees(update_of(1), 2) == one);
  CHECK(told.book.plans_made() == 2);
  const std::uint64_t again = told.sees(update_of(2), 2);
  CHECK(again > three);
  CHECK(again != two);
  CHECK(told.book.plans_made() == 3);
}

TEST_CASE("an iteration whose operations were not timed leaves the durations that are known") {
  ToldBook told(ToldBook::untried());
  const auto duration = [&] { return told.book.trace("train")->operations.at(0).duration; };
  told.sees(updates_of_tensors({1}, 100));
  IterationLog untimed = updates_of_tensors({1}, 50);
  untimed.timed = false;
  told.sees(untimed);
  CHECK(duration() == nanoseconds{100});
  told.sees(updates_of_tensors({1}, 70));
  CHECK(duration() == nanoseconds{70});
}

TEST_CASE("there is no trace of a name under which nothing was seen, though it may have a plan to load") {
  ToldBook told;
  CHECK(!told.book.trace("train").has_value());
  told.book.load("train", told.plan_by("belady", update_of(1)));
  CHECK(!told.book.trace("train").has_value());
  told.sees(update_of(1));
  CHECK(told.book.trace("train").has_value());
}

// ---- plans

TEST_CASE("a loaded plan for another program is refused once, with both programs") {
  ToldBook told(ToldBook::untried());
  const Plan foreign = told.plan_by("belady", updates_from(1, 7));
  told.book.load("train", foreign);
  told.sees(updates_from(1), 2);
  const Texts expected{"iteration \"train\": loaded plan refused: it is for the program " + foreign.trace_digest +
                       ", this one is " + told.plan()->plan.trace_digest};
  CHECK(told.book.notes() == expected);
  told.sees(updates_from(1), 3);
  CHECK(told.book.notes() == expected);
}

TEST_CASE("a loaded plan waits for its program while another one is followed by another loaded plan") {
  ToldBook told({.observe = 1, .trial_iterations = 0});
  told.book.load("train", told.plan_by("on-demand", updates_from(1)));
  told.book.load("train", told.plan_by("per-operation", updates_from(11, 7)));
  told.sees(updates_from(1));
  CHECK(told.makers() == Texts{"on-demand"});
  told.sees(updates_from(11, 7));
  CHECK(told.makers() == Texts{"per-operation", "on-demand"});
  CHECK(told.book.notes().empty());
  CHECK(told.planner_asked == 0);
}

TEST_CASE("a loaded plan takes the place of a plan that is being made for its program, and of one just made") {
  for (const bool seen_before : {true, false}) {
    CAPTURE(seen_before);
    ToldBook told({.planning = Planning::deferred, .trial_iterations = 0});
    told.sees(updates_from(1), 2);
    REQUIRE(told.book.pending_task() != nullptr);
    told.book.load("train", told.plan_by("on-demand", updates_from(1)));
    if (seen_before) {
      told.sees(updates_from(1));
      CHECK(told.book.pending_task() == nullptr);
    } else {
      told.finish();
    }
    CHECK(told.makers() == Texts{"on-demand"});
    CHECK(told.planner_asked == (seen_before ? 0 : 1));
    CHECK(told.book.notes().empty());
  }
}

TEST_CASE("a loaded plan waits while a plan for another name is being made") {
  ToldBook told({.planning = Planning::deferred, .trial_iterations = 0});
  told.sees(updates_from(21), 2, "evaluate");
  const auto task = told.book.pending_task();
  told.book.load("train", told.plan_by("on-demand", updates_from(1)));
  told.sees(updates_from(1), 3);
  CHECK(told.book.pending_task() == task);
  told.finish();
  told.sees(updates_from(1));
  CHECK(told.makers() == Texts{"on-demand"});
  CHECK(told.makers("evaluate") == Texts{"belady"});
  CHECK(told.book.notes().empty());
}

TEST_CASE("a loaded plan is followed though the planner had none for its program") {
  ToldBook told(ToldBook::untried());
  const Plan loaded = told.plan_by("on-demand", updates_from(1));
  told.planner = [](const Trace&, const Machine&) -> Result<Plan> { return Problem{"no idea"}; };
  told.sees(updates_from(1), 2);
  REQUIRE(told.plan() == nullptr);
  told.book.load("train", loaded);
  told.sees(updates_from(1));
  CHECK(told.makers() == Texts{"on-demand"});
}

TEST_CASE("a loaded plan that is not valid is refused with a note, and the plan just made is followed") {
  ToldBook told({.planning = Planning::deferred, .trial_iterations = 0});
  told.sees(updates_from(1), 2);
  Plan loaded = told.plan_by("on-demand", updates_from(1));
  loaded.commands.pop_back();
  told.book.load("train", loaded);
  told.finish();
  CHECK(told.makers() == Texts{"belady"});
  REQUIRE(told.book.notes().size() == 1);
  CHECK(says(told.book.notes()[0], {"\"train\"", "loaded plan refused"}));
  told.sees(updates_from(1), 2);
  CHECK(told.book.notes().size() == 1);
}

TEST_CASE("a plan is chosen until another one takes its place, with a trial or without") {
  for (const std::size_t trial : {std::size_t{0}, std::size_t{4}}) {
    CAPTURE(trial);
    ToldBook told({.trial_iterations = trial});
    told.sees(updates_from(1), 2);
    std::vector<FollowablePtr> replaced;
    for (const char* const maker : {"on-demand", "per-operation", "on-demand"}) {
      replaced.push_back(told.plan());
      CHECK(told.book.still_chosen("train", replaced.back()));
      told.book.load("train", told.plan_by(maker, updates_from(1)));
      CHECK(told.book.still_chosen("train", told.plan()));
      for (const FollowablePtr& gone : replaced) CHECK(!told.book.still_chosen("train", gone));
    }
  }
}

TEST_CASE("a report says that nothing repeats though fewer sequences are kept than iterations were compared") {
  ToldBook told({.max_period = 2, .max_sequences = 2});
  for (std::uint64_t i = 0; i < 19; ++i) told.sees(updates_from(1 + 10 * i));
  REQUIRE(told.report().on_demand.size() == 1);
  CHECK(told.report().on_demand[0].reason == OnDemandReason::nothing_repeats);
}

TEST_CASE("a loaded plan goes before the plan that is known of the same program on other tensors") {
  ToldBook told(ToldBook::untried());
  told.book.load("train", told.plan_by("on-demand", updates_from(1)));
  told.book.load("train", told.plan_by("per-operation", updates_from(1)));
  told.sees(updates_from(1));
  told.sees(updates_from(11));
  CHECK(told.makers() == Texts{"per-operation", "on-demand"});
}

TEST_CASE("the same program on other tensors gets the plan that is known, and no planner is asked") {
  ToldBook told(ToldBook::untried());
  const std::uint64_t first = told.sees(updates_from(1), 2);
  told.sees(updates_from(21, 7), 2);
  CHECK(told.planner_asked == 2);
  const std::uint64_t second = told.sees(updates_from(11), 2);
  CHECK(told.planner_asked == 2);
  CHECK(told.book.notes().empty());
  const auto cases = told.book.cases("train");
  REQUIRE(cases.size() == 3);
  CHECK(cases[0].members == std::vector{second});
  CHECK(cases[2].members == std::vector{first});
  CHECK(cases[0].plan->plan.commands == cases[2].plan->plan.commands);
  CHECK(cases[0].plan->program.roles[0].serial == 11);
}

TEST_CASE("one task is pending at a time, and the next cycle is planned when it occurs after that") {
  ToldBook told({.planning = Planning::deferred, .trial_iterations = 0});
  told.sees(updates_from(1), 2);
  const std::shared_ptr<PlanTask> task = told.book.pending_task();
  REQUIRE(task != nullptr);
  told.sees(updates_from(11, 7), 2);
  CHECK(told.book.pending_task() == task);
  told.finish();
  CHECK(told.book.pending_task() == nullptr);
  CHECK(told.plan()->program.trace.operations.size() == 6);
  told.sees(updates_from(11, 7));
  told.finish();
  CHECK(told.plan()->program.trace.operations.size() == 7);
}

TEST_CASE("a plan that is made anew takes the place of the one whose prediction was off, and of no other") {
  ToldBook told({.planning = Planning::deferred, .trial_iterations = 0});
  told.planner = [](const Trace& trace, const Machine& machine) { return make_plan("per-operation", trace, machine); };
  told.sees(updates_from(1), 2);
  told.finish();
  const FollowablePtr remade = told.plan();
  told.sees(updates_from(21, 7), 2);
  told.finish();
  const FollowablePtr longer = told.plan();
  told.book.used("train", remade);
  told.sees(updates_from(11), 2);
  const FollowablePtr same = told.plan();
  REQUIRE(told.book.cases("train").size() == 3);
  REQUIRE(told.book.cases("train")[1].plan == remade);
  told.planner = [](const Trace& trace, const Machine& machine) { return make_plan("belady", trace, machine); };
  told.book.sampled(remade, std::vector<nanoseconds>(6, nanoseconds{20}), told.machine);
  told.finish();
  CHECK(told.makers() == Texts{"per-operation", "belady", "per-operation"});
  CHECK(told.book.cases("train")[0].plan == same);
  CHECK(told.book.cases("train")[2].plan == longer);
  CHECK(told.report().plans_remade == 1);
}

TEST_CASE("a plan that no memory is left to install is installed the next time, whole") {
  for (std::uint64_t n = 1;; ++n) {
    REQUIRE(n < 100);
    ToldBook told({.planning = Planning::deferred, .trial_iterations = 0});
    told.sees(updates_from(1), 2);
    told.book.pending_task()->run();
    bool failed = false;
    {
      const FailingNew failing(n);
      try {
        told.book.install_finished();
      } catch (const std::bad_alloc&) {
        failed = true;
      }
    }
    if (failed) {
      CHECK(told.book.cases("train").empty());
      told.book.install_finished();
    }
    REQUIRE(told.book.cases("train").size() == 1);
    CHECK(told.plan()->plan.commands == told.plan_by("belady", updates_from(1)).commands);
    CHECK(told.plan()->operations.size() == 6);
    CHECK(told.book.plans_made() == 1);
    CHECK(told.book.pending_task() == nullptr);
    if (!failed) break;
  }
}

// ---- what is known of a plan

TEST_CASE("a plan needs no trial again on other tensors, and keeps its times") {
  ToldBook told({.trial_iterations = 1});
  told.sees(updates_from(1), 2);
  CHECK(told.book.cases("train")[0].state == PlanState::on_trial);
  told.book.round_took(told.plan(), nanoseconds{900});
  CHECK(told.book.cases("train")[0].state == PlanState::settled);
  told.sees(updates_from(11), 2);
  REQUIRE(told.book.cases("train").size() == 2);
  const PlanCase& added = told.book.cases("train")[0];
  CHECK(added.state == PlanState::settled);
  CHECK(added.times.median() == nanoseconds{900});
  CHECK(added.predicted == added.plan->plan.predicted.iteration);
}

TEST_CASE("a plan has a trial of its own where the same program has another plan, or one on trial") {
  for (const bool is_settled : {true, false}) {
    ToldBook told({.trial_iterations = is_settled ? 1U : 5U});
    told.book.load("train", told.plan_by("on-demand", updates_from(1)));
    told.book.load("train", told.plan_by(is_settled ? "per-operation" : "on-demand", updates_from(1)));
    told.sees(updates_from(1));
    told.book.round_took(told.plan(), nanoseconds{900});
    CHECK((told.book.cases("train")[0].state == PlanState::settled) == is_settled);
    told.sees(updates_from(11));
    REQUIRE(told.book.cases("train").size() == 2);
    CHECK(told.book.cases("train")[0].state == PlanState::on_trial);
    CHECK(told.book.cases("train")[0].times.count() == 0);
  }
}

TEST_CASE("a plan has a trial of its own where another program's plan has the same commands") {
  ToldBook told({.trial_iterations = 1});
  told.change_budget(Bytes{1024});
  told.sees(updates_from(1), 2);
  told.book.round_took(told.plan(), nanoseconds{900});
  told.sees(updates_from(11, 7), 2);
  const auto cases = told.book.cases("train");
  REQUIRE(cases.size() == 2);
  CHECK(cases[0].plan->plan.commands.empty());
  CHECK(cases[1].plan->plan.commands.empty());
  CHECK(cases[1].state == PlanState::settled);
  CHECK(cases[0].state == PlanState::on_trial);
  CHECK(cases[0].times.count() == 0);
}

TEST_CASE("where the device measures no times, a new plan has no trial") {
  ToldBook told;
  told.sees(updates_from(1), 2);
  CHECK(told.book.cases("train")[0].state == PlanState::on_trial);
  told.book.tells_no_times();
  CHECK(told.book.cases("train")[0].state == PlanState::settled);
  told.sees(updates_from(11, 7), 2);
  REQUIRE(told.book.cases("train").size() == 2);
  CHECK(told.book.cases("train")[0].state == PlanState::settled);
}

TEST_CASE("the plan used last is the first one, and a plan that is not known changes nothing") {
  ToldBook told(ToldBook::untried());
  told.sees(updates_from(1), 2);
  const FollowablePtr first = told.plan();
  told.sees(updates_from(11, 7), 2);
  const FollowablePtr second = told.plan();
  told.sees(updates_from(21, 8), 2);
  const FollowablePtr third = told.plan();
  const auto order = [&] {
    std::vector<FollowablePtr> plans;
    for (const PlanCase& known : told.book.cases("train")) plans.push_back(known.plan);
    return plans;
  };
  CHECK(order() == std::vector{third, second, first});
  told.book.used("train", second);
  CHECK(order() == std::vector{second, third, first});
  told.book.used("train", std::make_shared<const CompiledPlan>());
  CHECK(order() == std::vector{second, third, first});
  told.book.used("train", first);
  CHECK(order() == std::vector{first, second, third});
}

// ---- plans that fail

TEST_CASE("a plan that is given up is a note of its own name alone, and is not made again") {
  ToldBook told(ToldBook::untried());
  told.sees(updates_from(11), 2, "before");
  told.sees(updates_from(1), 2);
  told.sees(updates_from(21), 2, "behind");
  told.book.give_up(told.plan(), std::make_exception_ptr(std::runtime_error("lost")));
  CHECK(told.book.notes() == Texts{"iteration \"train\": its plan is given up: lost"});
  CHECK(told.plan() == nullptr);
  CHECK(told.book.cases("before").size() == 1);
  CHECK(told.book.cases("behind").size() == 1);
  REQUIRE(told.report().on_demand.size() == 1);
  CHECK(told.report().on_demand[0].iteration == "train");
  CHECK(told.report().on_demand[0].why == "its plan is given up: lost");
  told.sees(updates_from(1), 3);
  CHECK(told.plan() == nullptr);
}

TEST_CASE("giving up a plan leaves the reason why another cycle has none") {
  ToldBook told(ToldBook::untried());
  told.sees(updates_from(1), 2);
  told.planner = [](const Trace&, const Machine&) -> Result<Plan> { return Problem{"too hard"}; };
  told.sees(updates_from(11, 7), 2);
  told.book.give_up(told.plan(), std::make_exception_ptr(std::runtime_error("lost")));
  REQUIRE(told.report().on_demand.size() == 1);
  CHECK(told.report().on_demand[0].why == "too hard");
  CHECK(told.book.notes() ==
        Texts{"iteration \"train\" stays on demand: too hard", "iteration \"train\": its plan is given up: lost"});
}

TEST_CASE("a pending task is dropped where a value is to be kept, and its cycle is planned again") {
  ToldBook told({.planning = Planning::deferred, .trial_iterations = 0});
  told.sees(updates_from(1), 2);
  const std::shared_ptr<PlanTask> dropped = told.book.pending_task();
  REQUIRE(dropped != nullptr);
  told.book.keep_value(1);
  CHECK(told.book.pending_task() == nullptr);
  dropped->run();
  told.sees(updates_from(1));
  CHECK(told.plan() == nullptr);
  CHECK(told.book.pending_task() != dropped);
  told.finish();
  CHECK(told.plan() != nullptr);
}

TEST_CASE("a value that is to be kept is read back, and those of other tensors still die") {
  ToldBook told(ToldBook::untried());
  IterationLog log = updates_from(1, 3);
  for (LogAccess& access : log.accesses) access.access = Access::write;
  told.sees(log);
  CHECK(told.book.trace("train")->host_reads.empty());
  told.book.keep_value(2);
  const std::optional<Trace> trace = told.book.trace("train");
  REQUIRE(trace->host_reads.size() == 1);
  CHECK(index(trace->host_reads[0].tensor) == 1);
}
