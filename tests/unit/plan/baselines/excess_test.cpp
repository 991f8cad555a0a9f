// SPDX-License-Identifier: Apache-2.0
// The published heuristic on cases that were computed by hand. Links move one byte in a nanosecond, in both directions
// at once.
#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include <swapmm/plan/planners.hpp>
#include <swapmm/plan/validate.hpp>

#include "support/plain_traces.hpp"

using namespace swapmm;
using test::machine_of;
using test::plan_of;

namespace {

constexpr TensorId A{0}, B{1};

TraceTensor local(std::uint64_t bytes, TensorKind kind = TensorKind::transient) { return {"t", Bytes{bytes}, kind, 0}; }

TraceOperation named(const char* name, std::int64_t duration, std::vector<TensorId> reads,
                     std::vector<TensorId> writes = {}, std::vector<TensorId> updates = {}) {
  return {name, std::chrono::nanoseconds{duration}, std::move(reads), std::move(writes), std::move(updates)};
}

std::size_t copies(const Plan& plan) {
  return static_cast<std::size_t>(std::count_if(plan.commands.begin(), plan.commands.end(), [](const Command& command) {
    return command.kind == CommandKind::swap_in || command.kind == CommandKind::swap_out;
  }));
}

/// A is written, room is needed for B, and A is read in the end: 20, 10, then the operations in between, 5 ns.
Trace away(std::int64_t before_last, std::int64_t last) {
  Trace trace;
  trace.tensors = {local(30), local(80)};
  trace.operations = {named("write", 20, {}, {A}), named("large", 10, {}, {B}), named("before last", before_last, {}),
                      named("last", last, {}), named("read", 5, {A})};
  return trace;
}

}  // namespace

TEST_CASE("excess: operations whose copies take no longer than they compute keep them") {
  Trace trace;
  trace.tensors = {local(10)};
  trace.operations = {named("write", 20, {}, {A}), named("read", 20, {A})};
  const Plan plan = plan_of("excess", trace, machine_of(100));
  CHECK(copies(plan) == 2);
  CHECK(plan.predicted.iteration.count() == 60);  // 20, 10 out, 10 in, 20
}

TEST_CASE("excess: a copy to the host that is met on the way is removed together with the swap-in") {
  Trace trace;
  trace.tensors = {local(10)};
  trace.operations = {named("write", 5, {}, {A}), named("else", 5, {}), named("read", 5, {A})};
  const Plan plan = plan_of("excess", trace, machine_of(100));
  CHECK(copies(plan) == 0);
  CHECK(plan.predicted.iteration.count() == 15);
}

TEST_CASE("excess: a swap-in moves under the operation that hides the most of it, as far as there is room") {
  // A leaves from 20 to 50, then B is there until 60. The operation before the last one hides 25 of 30 ns, the last
  // one 12.
  Plan plan = plan_of("excess", away(25, 12), machine_of(100));
  CHECK(copies(plan) == 2);
  CHECK(plan.predicted.iteration.count() == 102);  // 60 + 25 + 12 + 5: A is there from 90 on
  // The last one hides the most: A comes in from 72 to 102.
  plan = plan_of("excess", away(12, 25), machine_of(100));
  CHECK(plan.predicted.iteration.count() == 107);
}

TEST_CASE("excess: of operations that hide the same, the nearest one") {
  const Plan plan = plan_of("excess", away(25, 25), machine_of(100));
  CHECK(plan.predicted.iteration.count() == 120);  // from 85 to 115, and not from 60 to 90
}

TEST_CASE("excess: with more room the tensor stays") {
  const Plan plan = plan_of("excess", away(25, 12), machine_of(110));
  CHECK(copies(plan) == 0);
  CHECK(plan.predicted.iteration.count() == 72);
}

TEST_CASE("excess: without rounds it is the start, in which nothing is moved") {
  const Machine machine = machine_of(100);
  const Trace trace = away(25, 12);
  const Result<Plan> plan = excess_planner({.rounds = 0}).make(trace, machine, {});
  REQUIRE(plan.has_value());
  CHECK(validate(trace, *plan).empty());
  CHECK(plan->predicted.iteration.count() == 132);  // A comes in from 97 to 127
}

TEST_CASE("excess: an input comes in earlier, but not before it is there") {
  Trace trace;
  trace.tensors = {local(30, TensorKind::input)};
  trace.tensors[0].available_from = 1;
  trace.operations = {named("a", 40, {}), named("b", 20, {}), named("c", 10, {}), named("read", 5, {A})};
  const Plan plan = plan_of("excess", trace, machine_of(100));
  CHECK(copies(plan) == 1);
  CHECK(plan.predicted.iteration.count() == 75);  // under b: from 40 to 70
}
