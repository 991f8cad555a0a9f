// SPDX-License-Identifier: Apache-2.0
// A plan, the plan before it, and which of them is followed.
#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <swapmm/runtime/book/plan_case.hpp>

namespace {

using namespace swapmm;
using namespace swapmm::runtime;
using std::chrono::nanoseconds;

FollowablePtr case_plan(std::int64_t predicted) {
  CompiledPlan plan;
  plan.plan.predicted.iteration = nanoseconds{predicted};
  return std::make_shared<const CompiledPlan>(std::move(plan));
}

/// A case that follows a plan of 100 ns, measured once and in the middle of its way to the next sample.
PlanCase case_settled_on(const FollowablePtr& plan) {
  PlanCase known;
  known.plan = plan;
  known.predicted = nanoseconds{100};
  known.times.add(nanoseconds{105});
  known.rounds = 5;
  return known;
}

/// Nothing of a trial is left.
void check_case_settled(const PlanCase& known, const FollowablePtr& plan) {
  CHECK(known.state == PlanState::settled);
  CHECK(known.choice() == plan);
  CHECK(known.plan == plan);
  CHECK(known.before == nullptr);
  CHECK(!known.checking);
  CHECK(known.rounds == 0);
}

}  // namespace

TEST_CASE("a plan on trial is followed from now on, and the one before it is kept with its times") {
  const FollowablePtr first = case_plan(100);
  const FollowablePtr second = case_plan(80);
  PlanCase known = case_settled_on(first);
  known.try_out(second, true);
  CHECK(known.state == PlanState::on_trial);
  CHECK(known.choice() == second);
  CHECK(known.before == first);
  CHECK(known.before_times.median() == nanoseconds{105});
  CHECK(known.before_predicted == nanoseconds{100});
  CHECK(known.predicted == nanoseconds{80});
  CHECK(known.times.count() == 0);
  CHECK(known.rounds == 0);
}

TEST_CASE("a plan that goes back brings back the one before it, with its times and its prediction") {
  const FollowablePtr first = case_plan(100);
  const FollowablePtr second = case_plan(80);
  PlanCase known = case_settled_on(first);
  known.try_out(second, true);
  known.times.add(nanoseconds{200});
  known.rounds = 3;
  known.members_sampled = 1;
  known.go_back();
  check_case_settled(known, first);
  CHECK(known.members_sampled == 0);
  CHECK(known.lost == second);
  CHECK(known.times.count() == 1);
  CHECK(known.times.median() == nanoseconds{105});
  CHECK(known.predicted == nanoseconds{100});
}

TEST_CASE("a plan that is kept forgets the one before it") {
  const FollowablePtr second = case_plan(80);
  PlanCase known = case_settled_on(case_plan(100));
  known.try_out(second, true);
  known.times.add(nanoseconds{70});
  known.rounds = 4;
  known.keep();
  check_case_settled(known, second);
  CHECK(known.times.median() == nanoseconds{70});
  CHECK(known.predicted == nanoseconds{80});
  // There is no plan any more to which it could go back.
  known.go_back();
  CHECK(known.state == PlanState::left);
  CHECK(known.choice() == nullptr);
}

TEST_CASE("a plan without a trial is settled at once, and there is none before it") {
  const FollowablePtr second = case_plan(80);
  PlanCase known = case_settled_on(case_plan(100));
  known.try_out(second, false);
  check_case_settled(known, second);
  CHECK(known.times.count() == 0);
  CHECK(known.predicted == nanoseconds{80});
}

TEST_CASE("a plan that was left stays known with its times, and nothing is followed") {
  const FollowablePtr plan = case_plan(100);
  PlanCase known = case_settled_on(plan);
  known.checking = true;
  known.members_sampled = 1;
  known.go_back();
  CHECK(known.state == PlanState::left);
  CHECK(known.choice() == nullptr);
  CHECK(known.plan == plan);
  CHECK(known.lost == plan);
  CHECK(!known.checking);
  CHECK(known.rounds == 0);
  CHECK(known.members_sampled == 0);
  CHECK(known.times.median() == nanoseconds{105});
}

TEST_CASE("a plan that is tried where on demand was being measured is followed, and goes back to on demand") {
  PlanCase known = case_settled_on(case_plan(100));
  known.state = PlanState::on_trial;
  known.checking = true;
  CHECK(known.choice() == nullptr);
  const FollowablePtr second = case_plan(80);
  known.try_out(second, true);
  CHECK(known.choice() == second);
  CHECK(known.before == nullptr);
  known.go_back();
  CHECK(known.state == PlanState::left);
}

TEST_CASE("slower means by more than one in a hundred") {
  CHECK(!slower(nanoseconds{99}, nanoseconds{100}));
  CHECK(!slower(nanoseconds{100}, nanoseconds{100}));
  CHECK(!slower(nanoseconds{101}, nanoseconds{100}));
  CHECK(slower(nanoseconds{102}, nanoseconds{100}));
  CHECK(!slower(nanoseconds{1'010'000}, nanoseconds{1'000'000}));
  CHECK(slower(nanoseconds{1'010'001}, nanoseconds{1'000'000}));
}

TEST_CASE("a cycle is the same from whichever of its members it begins, and another one in another order") {
  using Members = std::vector<std::uint64_t>;
  for (const Members& turned : {Members{1, 2, 3}, Members{2, 3, 1}, Members{3, 1, 2}}) {
    CHECK(same_cycle(turned, Members{1, 2, 3}));
    CHECK(!same_cycle(turned, Members{1, 3, 2}));
    CHECK(!same_cycle(turned, Members{1, 1, 2}));
  }
  CHECK(same_cycle(Members{1, 2, 1, 2, 3}, Members{1, 2, 3, 1, 2}));
  CHECK(!same_cycle(Members{1, 2, 1, 2, 3}, Members{1, 1, 2, 2, 3}));
  CHECK(!same_cycle(Members{1, 2}, Members{1, 2, 1, 2}));
}
