// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <swapmm/ir/liveness.hpp>
#include <swapmm/plan/planners.hpp>

#include "support/effort.hpp"
#include "support/exact_search.hpp"
#include "support/plain_traces.hpp"
#include "support/random_trace.hpp"
#include "support/tiny_instance.hpp"

using namespace swapmm;
using test::machine_of;
using test::operation;
using test::tensor;

namespace {

const int exact_rounds = test::effort(400, 16);

std::int64_t least(const Trace& trace, std::uint64_t budget) {
  REQUIRE(check_trace(trace));
  const auto result = test::least_iteration(trace, machine_of(budget));
  REQUIRE(result);
  return result->iteration.count();
}

constexpr TensorId A{0}, B{1}, C{2};

}  // namespace

TEST_CASE("the exact search finds what can be worked out by hand") {
  Trace trace;
  // Two in the place of one: all copies wait for the operations (docs/planning.md: room at both ends).
  trace.tensors = {tensor(10), tensor(10)};
  trace.operations = {operation(10, {A}), operation(10, {B})};
  CHECK(least(trace, 10) == 40);
  CHECK(least(trace, 20) == 20);
  // B comes under operation 1; A when B has gone.
  trace.operations = {operation(20, {A}), operation(20, {}), operation(20, {B})};
  CHECK(least(trace, 10) == 70);
  // Written values go out and come back: 4 copies in turn.
  trace.operations = {operation(5, {}, {}, {A}), operation(5, {}, {}, {B})};
  CHECK(least(trace, 10) == 50);
  // Of three, one stays and two take turns in the other's place: 20 of copies, and 10 that none of them hides under.
  trace.tensors.push_back(tensor(10));
  trace.operations = {operation(5, {A}), operation(5, {B}), operation(5, {C})};
  CHECK(least(trace, 20) == 30);
  // A new input waits for the end of the iteration before.
  trace.tensors = {tensor(10, TensorKind::input)};
  trace.operations = {operation(20, {A}), operation(5, {})};
  CHECK(least(trace, 100) == 35);
  trace.tensors[0].available_from = 1;
  trace.operations = {operation(20, {}), operation(7, {}), operation(5, {A})};
  CHECK(least(trace, 100) == 35);
}

TEST_CASE("lower bound <= optimum <= every planner, on tiny instances") {
  std::mt19937_64 random(7);
  int compared = 0;
  std::map<std::string, int> optimal;
  for (int round = 0; round < exact_rounds; ++round) {
    const test::TinyInstance tiny = test::random_tiny_instance(random);
    const auto exact = test::least_iteration(tiny.trace, tiny.machine, 200'000);
    if (!exact) continue;
    CAPTURE(round);
    for (const NamedPlanner& planner : planners()) {
      CAPTURE(planner.name);
      const Result<Plan> plan = planner.make(tiny.trace, tiny.machine, {});
      REQUIRE(plan);
      CHECK(plan->predicted.lower_bound <= exact->iteration);
      CHECK(exact->iteration <= plan->predicted.iteration);
      if (exact->iteration == plan->predicted.iteration) ++optimal[std::string(planner.name)];
    }
    ++compared;
  }
  CHECK(compared > exact_rounds * 3 / 4);
  for (const auto& [name, count] : optimal) MESSAGE(name, ": ", count, " of ", compared);
  // If a planner were never optimal, the search would bound nothing.
  CHECK(optimal["excess-overlap"] > compared / 3);
}
