// SPDX-License-Identifier: Apache-2.0
// Times at the ends of what files can hold: planners and bounds stay right. Found by tests/fuzz.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include <swapmm/plan/planners.hpp>
#include <swapmm/plan/relaxation/lower_bound.hpp>
#include <swapmm/plan/simulate.hpp>
#include <swapmm/plan/validate.hpp>

#include "support/plan_text.hpp"

using namespace swapmm;
using namespace swapmm::test;

namespace {

Trace two_take_turns(std::uint64_t bytes, std::int64_t first, std::int64_t second) {
  Trace trace;
  trace.tensors = {tensor("a", bytes, TensorKind::persistent), tensor("b", bytes, TensorKind::persistent)};
  trace.operations = {operation("use a", first, {}, {}, {0}), operation("use b", second, {}, {}, {1})};
  return trace;
}

}  // namespace

TEST_CASE("copies may take any number of iterations") {
  const Trace trace = two_take_turns(1U << 20U, 1, 1);
  Machine machine = test::machine(1U << 20U);
  machine.h2d.bytes_per_second = 1;
  machine.d2h.bytes_per_second = 1;
  for (const NamedPlanner& planner : planners()) {
    CAPTURE(planner.name);
    const auto plan = planner.make(trace, machine, {});
    REQUIRE(plan.has_value());
    CHECK(validate(trace, *plan).empty());
    // Four copies of 2^20 seconds, none beside another.
    CHECK(plan->predicted.iteration >= std::chrono::seconds{4L << 20U});
    CHECK(plan->predicted.lower_bound <= plan->predicted.iteration);
  }
}

TEST_CASE("no bound is above a time that a double cannot hold") {
  // The sums of these have more than 53 bits: as doubles some are smaller, some larger.
  for (const std::int64_t odd : {1, 9, 12, 15}) {
    const std::int64_t first = (std::int64_t{1} << 56U) + odd;
    const Trace trace = two_take_turns(100, first, 8);
    for (const std::uint64_t budget : {100U, 200U}) {
      CAPTURE(odd);
      CAPTURE(budget);
      const auto bound = lower_bound(trace, test::machine(budget));
      REQUIRE(bound.has_value());
      const auto plan = make_plan("on-demand", trace, test::machine(budget));
      REQUIRE(plan.has_value());
      CHECK(*bound >= std::chrono::nanoseconds{first + 8});
      CHECK(*bound <= plan->predicted.iteration);
    }
  }
}

TEST_CASE("iterations of years, a thousand of which no clock holds, take the time that they take") {
  // The clock ends after 146 years: within the iteration after the next, or a few later.
  constexpr std::int64_t second = 1'000'000'000;
  constexpr std::int64_t year = 365L * 24 * 3600 * second;
  for (const std::int64_t years : {1, 10, 20}) {
    CAPTURE(years);
    const Trace trace = two_take_turns(static_cast<std::uint64_t>(years) * 365 * 24 * 3600, 5, 7);
    Machine machine = test::machine(trace.tensors[0].bytes.value);
    machine.h2d.bytes_per_second = 1;
    machine.d2h.bytes_per_second = 1;
    for (const char* const name : {"per-operation", "on-demand", "excess-overlap"}) {
      CAPTURE(name);
      const auto plan = make_plan(name, trace, machine);
      REQUIRE(plan.has_value());
      // Two tensors go out and come in, one by one.
      CHECK(plan->predicted.iteration == std::chrono::nanoseconds{4 * years * year + 12});
      CHECK(plan->predicted.peak == trace.tensors[0].bytes);
      CHECK(plan->predicted.lower_bound <= plan->predicted.iteration);
      const auto ends = iteration_ends(trace, *plan, 3);
      CHECK(ends[0] > std::chrono::nanoseconds{0});
      CHECK(ends[2] == std::min(longest_iteration, ends[0] + 2 * (ends[1] - ends[0])));
    }
  }
}

TEST_CASE("an iteration that is longer than the clock takes the longest time there is") {
  // Four copies of 73 years each.
  const Trace trace = two_take_turns(std::uint64_t{1} << 31U, 5, 7);
  Machine machine = test::machine(std::uint64_t{1} << 31U);
  machine.h2d.bytes_per_second = 1;
  machine.d2h.bytes_per_second = 1;
  for (const NamedPlanner& planner : planners()) {
    CAPTURE(planner.name);
    const auto plan = planner.make(trace, machine, {});
    REQUIRE(plan.has_value());
    CHECK(validate(trace, *plan).empty());
    CHECK(plan->predicted.iteration == longest_iteration);
    CHECK(plan->predicted.lower_bound <= longest_iteration);
    CHECK(plan->predicted.compute == std::chrono::nanoseconds{12});
    CHECK(iteration_ends(trace, *plan, 5).back() == longest_iteration);
  }
}
