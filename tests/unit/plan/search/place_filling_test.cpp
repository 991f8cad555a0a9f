// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include <swapmm/ir/liveness.hpp>
#include <swapmm/plan/planners.hpp>
#include <swapmm/plan/schedule/stay_facts.hpp>
#include <swapmm/plan/search/places/place_filling.hpp>
#include <swapmm/plan/search/places/place_search.hpp>
#include <swapmm/plan/search/timing/swap_timing.hpp>
#include <swapmm/plan/simulate.hpp>
#include <swapmm/plan/step_times.hpp>
#include <swapmm/plan/validate.hpp>

#include "support/effort.hpp"
#include "support/random_trace.hpp"

using namespace swapmm;
using namespace swapmm::planning;
using test::one_of;

namespace {

/// A little more than half of what the trace needs.
Machine machine_for(const Trace& trace) {
  Machine machine;
  machine.h2d.bytes_per_second = machine.d2h.bytes_per_second = 1'000'000'000;
  const Liveness liveness = analyze_liveness(trace, machine.alignment);
  machine.device_budget = std::max({liveness.largest_bundle, Bytes{liveness.peak.value * 6 / 10}, Bytes{1}});
  return machine;
}

Trace some_trace(std::mt19937_64& random) {
  test::RandomTraceOptions options;
  options.operations = 3 + one_of(random, 30);
  options.tensors = 2 + one_of(random, 20);
  return test::random_trace(random, options);
}

/// Who is away is left to chance, as far as there is room; then packed, with little effort.
BuiltPlan pack_some_decisions(std::mt19937_64& random, SwapTiming& timing, OverlapLedger& ledger) {
  for (std::uint32_t a = 0; a < timing.absences(); ++a) {
    if (timing.largest_overrun() > 0 || one_of(random, 3) == 0) timing.set_away(a, true);
  }
  REQUIRE(timing.largest_overrun() <= 0);
  (void)timing.pass();
  timing.write_decisions();
  const PackingEffort effort{.ejection_steps = 50, .keep_most = true};
  Result<BuiltPlan> built = build_plan(ledger.planning, {Pace::overlapped, stays_of(ledger)}, "test", effort);
  REQUIRE(built);
  return *std::move(built);
}

PlanningCase planning_of(const Trace& trace, const Machine& machine) {
  Result<PlanningCase> planning = make_planning_case(trace, machine);
  REQUIRE(planning);
  return *std::move(planning);
}

/// A trace, and decisions for it that were packed.
struct Case {
  explicit Case(std::mt19937_64& random)
      : trace(some_trace(random)),
        machine(machine_for(trace)),
        planning(planning_of(trace, machine)),
        ledger(planning),
        timing(ledger),
        built(pack_some_decisions(random, timing, ledger)) {}

  Trace trace;
  Machine machine;
  PlanningCase planning;
  OverlapLedger ledger;
  SwapTiming timing;
  BuiltPlan built;
};

bool is_valid(const PlanningCase& planning, const PlaceFilling& filling) {
  Plan plan = build_placed_plan(planning, filling.schedule(), "test", filling.offsets());
  finish_plan(planning, plan);
  return validate(planning.trace, plan).empty() && plan.predicted.lower_bound <= plan.predicted.iteration;
}

/// With copies in that take half as long again.
std::chrono::nanoseconds time_with_slow_copies_in(const Trace& trace, const Plan& plan) {
  StepTimes times = step_times(trace, plan);
  for (std::size_t c = 0; c < plan.commands.size(); ++c) {
    if (plan.commands[c].kind == CommandKind::swap_in) times.commands[c] += times.commands[c] / 2;
  }
  return simulate(trace, plan, times).iteration;
}

/// In that order.
std::vector<TensorId> copied_to_host(const Plan& plan) {
  std::vector<TensorId> tensors;
  for (const Command& command : plan.commands) {
    if (command.kind == CommandKind::swap_out) tensors.push_back(command.tensor);
  }
  return tensors;
}

}  // namespace

TEST_CASE("whatever is filled and moved, everybody has a place, and the plan keeps all rules") {
  std::mt19937_64 random(1);
  int stayed = 0;
  int moved = 0;
  int housed = 0;
  const int rounds = test::effort(900, 30);
  for (int round = 0; round < rounds; ++round) {
    Case some(random);
    const BuiltPlan& built = some.built;
    PlaceFilling filling(some.ledger, built.offsets);
    if (!filling.house_everybody(10, 1'000'000)) {
      CHECK(!built.plan);
      continue;
    }
    housed += built.plan ? 0 : 1;
    for (std::uint32_t a = 0; a < some.ledger.absences.size(); ++a) {
      const Absence& absence = some.ledger.absences[a];
      if (absence.stays || absence.is_arrival) continue;
      if (one_of(random, 2) == 0) {
        stayed += filling.try_to_stay(a, one_of(random, 20)) ? 1 : 0;
      } else if (one_of(random, 2) == 0) {
        const auto gap =
            absence.first + static_cast<std::uint32_t>(one_of(random, absence.returns - absence.first + 1));
        moved += filling.try_to_leave(a, gap, one_of(random, 20)) ? 1 : 0;
      } else if (absence.returns > absence.gone) {
        const auto gap = absence.gone + static_cast<std::uint32_t>(one_of(random, absence.returns - absence.gone));
        moved += filling.try_to_return(a, gap, one_of(random, 20)) ? 1 : 0;
      }
    }
    CHECK(is_valid(some.planning, filling));
  }
  CHECK(stayed > rounds / 3);
  CHECK(moved > rounds / 3);
  if (rounds >= 300) CHECK(housed > 0);  // it is rare that packing finds no place, and filling does
}

TEST_CASE("what finds no place leaves everything as it was") {
  std::mt19937_64 random(2);
  int refused = 0;
  for (int round = 0; round < 200; ++round) {
    Case some(random);
    const BuiltPlan& built = some.built;
    if (!built.plan) continue;
    PlaceFilling filling(some.ledger, built.offsets);
    CHECK(filling.offsets() == built.offsets);
    for (std::uint32_t a = 0; a < some.ledger.absences.size(); ++a) {
      if (some.ledger.absences[a].stays || some.ledger.absences[a].is_arrival) continue;
      const std::vector<Stay> stays = filling.schedule().stays;
      const std::vector<Bytes> offsets = filling.offsets();
      if (filling.try_to_stay(a, 5)) continue;
      ++refused;
      CHECK(filling.schedule().stays == stays);
      CHECK(filling.offsets() == offsets);
    }
  }
  CHECK(refused > 100);
}

TEST_CASE("a search with places ends with nothing slower than what it began with") {
  std::mt19937_64 random(3);
  int faster = 0;
  for (int round = 0; round < 100; ++round) {
    Case some(random);
    const BuiltPlan& built = some.built;
    if (!built.plan) continue;
    BestPlan best(some.planning, *built.plan);
    const auto before = best.simulation().iteration;
    PlaceSearch search(some.ledger, some.timing, best);
    search.run(built.offsets, std::vector<char>(some.ledger.absences.size()), {10, 1'000'000}, [] { return false; });
    const auto after = best.simulation().iteration;
    CHECK(after <= before);
    faster += after < before ? 1 : 0;
    Plan plan = std::move(best).take();
    finish_plan(some.planning, plan);
    CHECK(validate(some.trace, plan).empty());
  }
  CHECK(faster > 10);
}

TEST_CASE("tensors that return earlier than they need to leave the plan as fast, and delays cost less") {
  std::mt19937_64 random(4);
  std::chrono::nanoseconds delayed{0};
  std::chrono::nanoseconds delayed_before{0};
  for (int round = 0; round < test::effort(200, 10); ++round) {
    Case some(random);
    const BuiltPlan& built = some.built;
    if (!built.plan) continue;
    BestPlan best(some.planning, *built.plan);
    const auto rank = BestPlan::rank(best.simulation());
    PlaceSearch search(some.ledger, some.timing, best);
    search.return_earlier({some.ledger, built.offsets}, {15, 1'000'000});
    CHECK(BestPlan::rank(best.simulation()) <= rank);
    Plan plan = std::move(best).take();
    CHECK(copied_to_host(plan) == copied_to_host(*built.plan));
    finish_plan(some.planning, plan);
    CHECK(validate(some.trace, plan).empty());
    delayed += time_with_slow_copies_in(some.trace, plan);
    delayed_before += time_with_slow_copies_in(some.trace, *built.plan);
  }
  CAPTURE(delayed_before.count());
  CHECK(delayed < delayed_before);
}
