// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <swapmm/ir/liveness.hpp>
#include <swapmm/plan/planners.hpp>
#include <swapmm/plan/recompute.hpp>
#include <swapmm/plan/recompute/bound.hpp>
#include <swapmm/plan/recompute/replays.hpp>
#include <swapmm/plan/simulate.hpp>
#include <swapmm/plan/v2/recompute.hpp>
#include <swapmm/plan/v2/simulate.hpp>
#include <swapmm/plan/v2/validate.hpp>
#include <swapmm/plan/validate.hpp>

#include "support/effort.hpp"
#include "support/random_trace.hpp"

namespace swapmm::test::recompute_property_test {
using std::chrono::nanoseconds;

constexpr int rounds = fewer_if_slow(300, 20);

Trace replayable_case(std::mt19937_64& random) {
  RandomTraceOptions options;
  options.operations = 2 + one_of(random, one_of(random, 4) == 0 ? 30 : 12);
  options.tensors = 2 + one_of(random, 12);
  options.max_bundle = 1 + one_of(random, 4);
  options.max_bytes = 1 + one_of(random, 300);
  options.max_duration = static_cast<std::int64_t>(1 + one_of(random, 200));
  options.host_reads = one_of(random, 2) == 0 ? 0.0 : 0.15;
  Trace trace = random_trace(random, options);
  for (TraceOperation& operation : trace.operations) operation.replayable = chance(random, 0.7);
  return trace;
}

/// Some of all replays that are possible.
std::vector<Replay> some_replays(const Trace& trace, std::mt19937_64& random, double probability) {
  const planning::ValueHistory history(trace);
  std::vector<Replay> replays;
  const auto n = static_cast<std::uint32_t>(trace.operations.size());
  for (std::uint32_t operation = 0; operation < n; ++operation) {
    for (std::uint32_t before = operation + 1; before < n; ++before) {
      if (!history.may_run_again(operation, before) || !chance(random, probability)) continue;
      replays.push_back({static_cast<OperationId>(operation), static_cast<OperationId>(before)});
    }
  }
  return replays;
}

/// Version 1 has two host copies of an input that operations change, version 2 one place.
bool changes_inputs(const Trace& trace) {
  bool changes = false;
  for (const TraceOperation& operation : trace.operations) {
    for_each_access(operation, [&](TensorId tensor, Access access) {
      changes = changes || (access != Access::read && trace.tensors[index(tensor)].kind == TensorKind::input);
    });
  }
  return changes;
}

TEST_CASE("plans with any replays are valid in version 2, take as long there, and are not faster than the bound") {
  std::mt19937_64 random(2026);
  int with_replays_count = 0;
  int above_compute = 0;
  for (int round = 0; round < rounds; ++round) {
    CAPTURE(round);
    const Trace trace = replayable_case(random);
    const std::vector<Replay> replays = some_replays(trace, random, round % 3 == 0 ? 0.5 : 0.1);
    const Result<ReplayedTrace> replayed = with_replays(trace, replays);
    REQUIRE(replayed);
    REQUIRE(check_trace(replayed->trace));
    CHECK(replayed->trace.operations.size() == trace.operations.size() + replays.size());
    const Machine machine = random_machine_for(replayed->trace, random, 110);
    const Trace plain = planning::without_replayable(trace);
    const Result<planning::PlanningCase> planning = planning::make_planning_case(plain, machine);
    REQUIRE(planning);
    const nanoseconds bound = planning::recomputing_bound(trace, planning::ValueHistory(trace), *planning);
    above_compute += bound > compute_of(trace) ? 1 : 0;
    for (const NamedPlanner& planner : planners()) {
      if (planner.name == "best" && round % 8 != 0) continue;
      CAPTURE(planner.name);
      const Result<Plan> plan = planner.make(replayed->trace, machine, {});
      REQUIRE(plan);
      CHECK(plan->predicted.iteration >= bound);
      if (changes_inputs(trace)) continue;
      const Result<v2::Plan> as_v2 = v2::from_recomputing(trace, {replays, *plan});
      REQUIRE(as_v2);
      const std::vector<Violation> violations = v2::validate(trace, *as_v2);
      CHECK_MESSAGE(violations.empty(), (violations.empty() ? std::string() : violations.front().message));
      CHECK(v2::simulate(trace, *as_v2).iteration == plan->predicted.iteration);
    }
    with_replays_count += replays.empty() ? 0 : 1;
  }
  CHECK(with_replays_count > rounds / 2);
  CHECK(above_compute > rounds / 100);
}

TEST_CASE("the mixed plan is never slower than the one that only copies, and says how far it may be from the best") {
  std::mt19937_64 random(17);
  int faster = 0;
  for (int round = 0; round < fewer_if_slow(30, 10); ++round) {
    CAPTURE(round);
    const Trace trace = replayable_case(random);
    const Machine machine = random_machine_for(trace, random, 90);
    const Result<Plan> copies = make_plan("best", planning::without_replayable(trace), machine);
    const Result<RecomputingPlan> mixed = plan_with_replays(trace, machine);
    REQUIRE(copies);
    REQUIRE(mixed);
    CHECK(mixed->plan.predicted.iteration <= copies->predicted.iteration);
    CHECK(mixed->plan.predicted.lower_bound <= mixed->plan.predicted.iteration);
    CHECK(mixed->plan.predicted.lower_bound >= compute_of(trace));
    faster += mixed->plan.predicted.iteration < copies->predicted.iteration ? 1 : 0;
    const Result<ReplayedTrace> replayed = with_replays(trace, mixed->replays);
    REQUIRE(replayed);
    CHECK(validate(replayed->trace, mixed->plan).empty());
  }
  CHECK(faster > 0);
}

}  // namespace swapmm::test::recompute_property_test
