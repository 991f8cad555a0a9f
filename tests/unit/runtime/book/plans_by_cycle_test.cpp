// SPDX-License-Identifier: Apache-2.0
// Which cycle of iterations a plan belongs to, among several under one name.
#include <doctest/doctest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <swapmm/runtime/book/program_book.hpp>

#include "support/told_book.hpp"

namespace {

using namespace swapmm;
using namespace swapmm::test;
using runtime::FollowablePtr;
using runtime::PlanTask;

using Makers = std::vector<std::string>;

/// On-demand plan for iterations of six and of seven updates in turn, the given one first.
Plan plan_of_turns(const ToldBook& told, const runtime::IterationLog& first, const runtime::IterationLog& second) {
  const runtime::IterationLog* const logs[] = {&first, &second};
  Result<runtime::Program> program = runtime::make_program(logs, "train");
  REQUIRE(program.has_value());
  Result<Plan> made = make_plan("on-demand", program->trace, told.machine);
  REQUIRE(made.has_value());
  return *std::move(made);
}

}  // namespace

TEST_CASE("a divergence counts against the plan that was followed, and against no other that was started before") {
  ToldBook told(ToldBook::untried());
  told.sees(updates_from(1), 2);
  const FollowablePtr first = told.plan();
  told.sees(updates_from(11, 7), 2);
  const FollowablePtr second = told.plan();
  REQUIRE(first != second);
  told.book.used("train", first);
  told.book.diverged("train", first);
  told.book.used("train", first);  // and then another budget, or another name, which is no divergence
  for (int i = 0; i < 2; ++i) {
    told.book.used("train", second);
    told.book.diverged("train", second);
  }
  const auto cases = told.book.cases("train");
  REQUIRE(cases.size() == 2);
  CHECK(cases[0].plan == second);
  CHECK(cases[0].offered() == nullptr);
  CHECK(cases[1].offered() == first);
}

TEST_CASE("a loaded plan waits while a plan for another cycle of its name is being made") {
  ToldBook told({.planning = Planning::deferred, .trial_iterations = 0});
  told.sees(updates_from(11, 7), 2);
  const std::shared_ptr<PlanTask> task = told.book.pending_task();
  REQUIRE(task != nullptr);
  told.book.load("train", told.plan_by("on-demand", updates_from(1)));
  told.sees(updates_from(1), 3);
  CHECK(told.book.pending_task() == task);
  told.finish();
  CHECK(told.makers() == Makers{"belady"});
  told.sees(updates_from(1));
  CHECK(told.makers() == Makers{"on-demand", "belady"});
  CHECK(told.book.notes().empty());
}

TEST_CASE("a loaded plan for a cycle takes the place of its plan though that one begins with another iteration") {
  ToldBook told({.planning = Planning::deferred, .max_period = 2, .trial_iterations = 0});
  const runtime::IterationLog six = updates_from(1);
  const runtime::IterationLog seven = updates_from(4, 7);  // three of the same tensors
  for (int i = 0; i < 2; ++i) {
    told.sees(six);
    told.sees(seven);
  }
  REQUIRE(told.book.pending_task() != nullptr);
  told.book.load("train", plan_of_turns(told, seven, six));
  told.finish();
  REQUIRE(told.makers() == Makers{"belady"});
  told.sees(six);
  CHECK(told.makers() == Makers{"on-demand"});
  CHECK(told.book.notes().empty());
}

TEST_CASE("a plan is loaded for the program that it is for, though the plan of another one was used last") {
  ToldBook told(ToldBook::untried());
  told.sees(updates_from(1), 2);
  told.sees(updates_from(11, 7), 2);
  told.book.load("train", told.plan_by("on-demand", updates_from(1)));
  CHECK(told.makers() == Makers{"belady", "on-demand"});
  CHECK(told.book.cases("train")[1].plan->program.trace.operations.size() == 6);
}
