// SPDX-License-Identifier: Apache-2.0
// How much a program book keeps, and what it forgets.
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <swapmm/runtime/book/program_book.hpp>

#include "support/failing_new.hpp"
#include "support/told_book.hpp"

namespace {

using namespace swapmm;
using namespace swapmm::test;

std::vector<std::string> numbered_notes(int from, int to) {
  std::vector<std::string> texts;
  for (int i = from; i <= to; ++i) texts.push_back("note " + std::to_string(i));
  return texts;
}

}  // namespace

TEST_CASE("an iteration that repeats is planned though the options allow no cycle at all") {
  ToldBook told({.max_period = 0, .trial_iterations = 0});
  told.sees(updates_from(1));
  CHECK(told.book.plans_made() == 0);
  told.sees(updates_from(1));
  CHECK(told.book.plans_made() == 1);
}

TEST_CASE("as many sequences are kept as the longest cycle has, however few the options allow") {
  ToldBook told({.max_period = 3, .max_sequences = 1, .trial_iterations = 0});
  std::vector<std::uint64_t> ids;
  for (int round = 0; round < 2; ++round) {
    for (const std::uint64_t serial : {1U, 11U, 21U}) ids.push_back(told.sees(updates_from(serial)));
  }
  CHECK(std::vector(ids.begin(), ids.begin() + 3) == std::vector(ids.begin() + 3, ids.end()));
  CHECK(told.book.plans_made() == 1);
}

TEST_CASE("nothing is learned where no iteration is to be observed") {
  ToldBook told({.observe = 0, .trial_iterations = 0});
  CHECK(told.sees(updates_from(1), 4) == 0);
  CHECK(told.book.plans_made() == 0);
  CHECK(!told.book.trace("train").has_value());
}

TEST_CASE("an iteration of a new name that teaches nothing leaves nothing in the book") {
  ToldBook told;
  const std::string_view name = "a name that is too long to be kept without an allocation";
  runtime::IterationLog broken;
  broken.broken = true;
  const std::uint64_t before = allocations();
  (void)told.book.observed(name, std::move(broken), told.machine);
  CHECK(allocations() == before);
}

TEST_CASE("the last sixteen notes are kept, in their order") {
  ToldBook told;
  for (const std::string& text : numbered_notes(1, 16)) told.book.note(text);
  CHECK(told.book.notes() == numbered_notes(1, 16));
  for (const std::string& text : numbered_notes(17, 20)) told.book.note(text);
  CHECK(told.book.notes() == numbered_notes(5, 20));
  CHECK(told.report().notes == numbered_notes(5, 20));
}

TEST_CASE("of very many iteration names, those that were used last are known, and planned for") {
  ToldBook told({.trial_iterations = 0});
  const auto name = [](int i) { return "step " + std::to_string(i); };
  const auto sees = [&](int i) { (void)told.book.observed(name(i), updates_from(1), told.machine); };
  for (int i = 0; i < 1024; ++i) sees(i);
  sees(0);  // planned, and used again
  CHECK(told.book.plans_made() == 1);
  for (int i = 1024; i < 1030; ++i) sees(i);
  CHECK(told.book.trace(name(0)).has_value());
  for (int i = 1; i <= 6; ++i) CHECK(!told.book.trace(name(i)).has_value());
  CHECK(told.book.trace(name(7)).has_value());
  CHECK(told.book.trace(name(1029)).has_value());
  sees(1);
  CHECK(told.book.plans_made() == 1);
  sees(1);
  CHECK(told.book.plans_made() == 2);
}

TEST_CASE("that a cycle could not be planned is no longer said once its iterations are forgotten") {
  ToldBook told({.max_period = 1, .max_sequences = 2, .trial_iterations = 0});
  told.planner = [](const Trace&, const Machine&) -> Result<Plan> { return Problem{"too hard"}; };
  told.sees(updates_from(1), 2);
  told.sees(updates_from(11));
  REQUIRE(told.report().on_demand.size() == 1);
  CHECK(told.report().on_demand[0].reason == OnDemandReason::no_plan);
  CHECK(told.report().on_demand[0].why == "too hard");
  told.sees(updates_from(21));  // in the place of the first
  REQUIRE(told.report().on_demand.size() == 1);
  CHECK(told.report().on_demand[0].reason == OnDemandReason::nothing_repeats);
}
