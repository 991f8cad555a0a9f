// SPDX-License-Identifier: Apache-2.0
// Values that linger, planned by `ilp`.
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <random>
#include <string>

#include <swapmm/plan/ilp.hpp>
#include <swapmm/plan/ilp/slots.hpp>
#include <swapmm/plan/validate.hpp>

#include "ilp/optimum.hpp"
#include "support/effort.hpp"
#include "support/exact_search.hpp"
#include "support/plain_traces.hpp"
#include "support/random_trace.hpp"
#include "support/tiny_instance.hpp"

using namespace swapmm;
using namespace swapmm::planning;
using test::machine_of;
using test::operation;
using test::tensor;

namespace {

constexpr double likely = 0.8;  ///< that a value lingers
constexpr int fewer = 5;        ///< of the rounds are enough where they are slow

/// Operation 0 writes x and 1 reads it; then 2 writes y and 3 reads it. x lingers until the end of operation `until`.
Trace x_then_y(std::uint32_t until) {
  Trace trace;
  trace.tensors = {tensor(10, TensorKind::transient), tensor(10, TensorKind::transient)};
  trace.operations = {operation(4, {}, {TensorId{0}}), operation(4, {TensorId{0}}), operation(4, {}, {TensorId{1}}),
                      operation(4, {TensorId{1}})};
  if (until > 0) trace.lingering = {{TensorId{0}, OperationId{1}, until}};
  return trace;
}

/// The optimum, which the plan must have.
std::int64_t time_of_optimum(const Trace& trace, const Machine& machine) {
  const IlpResult result = test::proven_optimum(trace, machine);
  CHECK(result.notes.empty());
  return result.plan.predicted.iteration.count();
}

}  // namespace

TEST_CASE("optima with values that linger can be worked out by hand") {
  CHECK(time_of_optimum(x_then_y(0), machine_of(10)) == 16);
  // Until the end of operation 2: it makes room for y with a copy of 10, which may begin with operation 1, so 6 are
  // waited for.
  CHECK(time_of_optimum(x_then_y(2), machine_of(10)) == 22);
  CHECK(time_of_optimum(x_then_y(4), machine_of(10)) == 22);
  CHECK(time_of_optimum(x_then_y(4), machine_of(20)) == 16);
  // The copy is hidden, if it may take as long as operation 1.
  Machine fast = machine_of(10);
  fast.d2h.bytes_per_second *= 3;
  CHECK(time_of_optimum(x_then_y(4), fast) == 16);
}

TEST_CASE("on tiny instances with values that linger, the integer program proves the optimum of the exact search") {
  std::mt19937_64 random(31);
  int compared = 0;
  int optimal = 0;
  int dearer = 0;
  for (int round = 0; round < test::effort(120, fewer); ++round) {
    const test::TinyInstance tiny = test::random_tiny_instance(random, likely);
    if (tiny.trace.lingering.empty()) continue;
    REQUIRE(check_trace(tiny.trace));
    const auto exact = test::least_iteration(tiny.trace, tiny.machine, 100'000);
    if (!exact) continue;
    CAPTURE(round);
    const Result<IlpResult> result = plan_by_ilp(tiny.trace, tiny.machine);
    REQUIRE(result);
    CHECK(validate(tiny.trace, result->plan).empty());
    CHECK(result->notes.empty());
    CHECK(result->lower_bound == exact->iteration);
    CHECK(result->plan.predicted.iteration >= exact->iteration);
    CHECK((result->status == IlpStatus::optimal) == (result->plan.predicted.iteration == exact->iteration));
    if (result->status == IlpStatus::optimal) ++optimal;
    ++compared;
    Trace without = tiny.trace;
    without.lingering.clear();
    const auto less = test::least_iteration(without, tiny.machine, 100'000);
    if (!less) continue;
    CHECK(less->iteration <= exact->iteration);
    if (less->iteration < exact->iteration) ++dearer;
  }
  MESSAGE(optimal, " plans of ", compared, " have it; ", dearer, " take longer than if nothing lingered");
  CHECK(compared > test::effort(60, fewer));
  CHECK(optimal > compared * 17 / 20);  // the others do not pack
  CHECK(dearer > compared / 10);
}

TEST_CASE("the program over slots bounds the optimum if values linger") {
  std::mt19937_64 random(32);
  for (int round = 0; round < test::effort(60, fewer); ++round) {
    const test::TinyInstance tiny = test::random_tiny_instance(random, likely);
    const auto exact = test::least_iteration(tiny.trace, tiny.machine, 50'000);
    if (!exact) continue;
    CAPTURE(round);
    const Result<PlanningCase> planning = make_planning_case(tiny.trace, tiny.machine);
    REQUIRE(planning);
    const OverlapLedger ledger(*planning);
    for (std::uint32_t slots = 1; slots <= planning->operations; ++slots) {
      CAPTURE(slots);
      const ilp::SlotModel model = ilp::make_slot_model(ledger, slots, ilp::Rounding::outward);
      const ilp::Solution relaxed = ilp::solve_relaxation(model.program, {});
      REQUIRE(relaxed.outcome == ilp::Outcome::optimal);
      CHECK(ilp::iteration_bound(model, relaxed.bound) <= exact->iteration);
      const ilp::Solution whole = ilp::solve(model.program, {.nodes = 2000});
      CHECK(ilp::iteration_bound(model, whole.bound) <= exact->iteration);
    }
  }
}

TEST_CASE("plans of random traces with values that linger are valid, and no worse than what was tried first") {
  std::mt19937_64 random(33);
  for (int round = 0; round < test::effort(20, fewer); ++round) {
    test::RandomTraceOptions options;
    options.operations = 1 + test::one_of(random, 30);
    options.tensors = 1 + test::one_of(random, 20);
    Trace trace = test::random_trace(random, options);
    test::add_lingering(trace, random, likely);
    Machine machine = test::random_machine(random, Bytes{1});
    machine.max_allocation.reset();
    const Liveness liveness = analyze_liveness(trace, machine.alignment);
    const std::uint64_t least = std::max<std::uint64_t>(liveness.largest_bundle.value, 1);
    machine.device_budget = Bytes{least + (std::max(least, liveness.peak.value) - least) / 3};
    CAPTURE(round);
    int calls = 200;
    PlanningOptions limits;
    limits.go_on = [&](const PlanningProgress&) { return calls-- > 0; };
    const Result<IlpResult> result = plan_by_ilp(trace, machine, {}, limits);
    REQUIRE(result);
    CHECK(validate(trace, result->plan).empty());
    CHECK(result->notes.empty());
    for (const char* other : {"belady", "excess-overlap"}) {
      const Result<Plan> plan = make_plan(other, trace, machine);
      REQUIRE(plan);
      CHECK(result->plan.predicted.iteration <= plan->predicted.iteration);
      CHECK(result->lower_bound <= plan->predicted.iteration);
    }
  }
}
