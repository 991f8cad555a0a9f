// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <swapmm/formats/trace_json.hpp>
#include <swapmm/ir/liveness.hpp>
#include <swapmm/plan/baselines/on_demand.hpp>
#include <swapmm/plan/changed_trace.hpp>
#include <swapmm/plan/excess_overlap/overlap_stays.hpp>
#include <swapmm/plan/planners.hpp>
#include <swapmm/plan/schedule/absence_stays.hpp>
#include <swapmm/plan/simulate.hpp>
#include <swapmm/plan/validate.hpp>

#include "support/effort.hpp"
#include "support/random_trace.hpp"
#include "test_data.hpp"

using namespace swapmm;
using namespace swapmm::planning;
using test::one_of;

namespace {

const int planner_rounds = test::effort(600, 24);

std::string violations_of(const Trace& trace, const Plan& plan) {
  std::string text;
  for (const Violation& violation : validate(trace, plan)) {
    text += "rule " + std::to_string(violation.rule) + ": " + violation.message + '\n';
  }
  return text;
}

/// With its moves as operations, the program needs no more than the budget, whatever it needed before.
void check_changed_trace(const Trace& trace, const Machine& machine, const Plan& plan) {
  const Trace changed = changed_trace(trace, plan);
  const Check problem = check_trace(changed);
  REQUIRE_MESSAGE(problem, problem.problem().message);
  const Liveness liveness = analyze_liveness(changed, machine.alignment);
  CHECK(*std::max_element(liveness.live.begin(), liveness.live.end()) <= machine.device_budget);
  std::vector<TraceOperation> rest = changed.operations;
  std::erase_if(rest, [](const TraceOperation& operation) {
    return operation.name.starts_with("reduce ") || operation.name.starts_with("restore ");
  });
  CHECK(rest == trace.operations);
}

/// What holds for the plan of any planner.
void check_plan(const Trace& trace, const Machine& machine, const Plan& plan) {
  CHECK(violations_of(trace, plan) == "");
  const Simulation simulation = simulate(trace, plan);
  CHECK(plan.predicted.iteration == simulation.iteration);
  CHECK(plan.predicted.h2d == simulation.h2d);
  CHECK(plan.predicted.d2h == simulation.d2h);
  CHECK(plan.predicted.peak == simulation.peak);
  CHECK(plan.predicted.compute == test::compute_of(trace));
  CHECK(plan.predicted.iteration >= plan.predicted.lower_bound);
  CHECK(plan.predicted.lower_bound >= plan.predicted.compute);
  CHECK(simulation.peak <= machine.device_budget);
  check_changed_trace(trace, machine, plan);
}

bool is_worse(const Plan& a, const Plan& b) {
  if (a.predicted.iteration != b.predicted.iteration) return a.predicted.iteration > b.predicted.iteration;
  return a.predicted.h2d + a.predicted.d2h > b.predicted.h2d + b.predicted.d2h;
}

test::RandomTraceOptions random_options(std::mt19937_64& random) {
  test::RandomTraceOptions options;
  options.operations = 1 + one_of(random, one_of(random, 4) == 0 ? 40 : 10);
  options.tensors = 1 + one_of(random, one_of(random, 4) == 0 ? 30 : 7);
  options.max_bundle = 1 + one_of(random, 4);
  options.max_bytes = 1 + one_of(random, 200);
  options.max_duration = static_cast<std::int64_t>(1 + one_of(random, 200));
  options.host_reads = one_of(random, 2) == 0 ? 0.0 : 0.15;
  return options;
}

Machine random_machine_with_arenas(const Trace& trace, std::mt19937_64& random) {
  Machine machine = test::random_machine_for(trace, random, 125);  // up to more than everything at once
  if (one_of(random, 4) == 0) {
    machine.max_allocation =
        round_up(Bytes{1 + machine.device_budget.value / (1 + one_of(random, 3))}, machine.alignment);
  }
  return machine;
}

/// The most bytes that the stays hold at one operation.
std::uint64_t load_of(const PlanningCase& planning, const std::vector<Stay>& stays) {
  std::vector<std::uint64_t> held(planning.operations);
  for (const Stay& stay : stays) {
    for (std::uint32_t i = 0; i < stay.length; ++i) {
      held[(stay.start + i) % planning.operations] += planning.sizes[index(stay.tensor)];
    }
  }
  return *std::max_element(held.begin(), held.end());
}

}  // namespace

TEST_CASE("every planner gives a valid plan for every random trace and machine whose bundles fit") {
  std::mt19937_64 random(20);
  int planned = 0;
  for (int round = 0; round < planner_rounds; ++round) {
    const Trace trace = test::random_trace(random, random_options(random));
    const Machine machine = random_machine_with_arenas(trace, random);
    std::optional<Plan> per_operation;
    for (const NamedPlanner& planner : planners()) {
      CAPTURE(round);
      CAPTURE(planner.name);
      const Result<Plan> plan = planner.make(trace, machine, {});
      // Only arenas can make a bundle not fit here.
      REQUIRE((plan || machine.max_allocation));
      if (!plan) {
        CHECK(plan.problem().message.find("operation ") == 0);
        continue;
      }
      check_plan(trace, machine, *plan);
      CHECK(plan->planner == planner.name);
      // `best` takes longer than all others together.
      if (planner.name != "best" || round % 4 == 0) CHECK(*planner.make(trace, machine, {}) == *plan);
      if (planner.name == "per-operation") per_operation = *plan;
      if (planner.name == "excess-overlap" && per_operation) CHECK(!is_worse(*plan, *per_operation));
      ++planned;
    }
  }
  CHECK(planned > 6 * planner_rounds);
}

TEST_CASE("no plan of any planner loses a value that lingers") {
  std::mt19937_64 random(23);
  int saved = 0;
  int kept = 0;
  for (int round = 0; round < planner_rounds; ++round) {
    Trace trace = test::random_trace(random, random_options(random));
    test::add_lingering(trace, random, 0.7);
    REQUIRE(check_trace(trace));
    Trace without = trace;
    without.lingering.clear();
    const Machine machine = random_machine_with_arenas(trace, random);
    for (const NamedPlanner& planner : planners()) {
      CAPTURE(round);
      CAPTURE(planner.name);
      const Result<Plan> plan = planner.make(trace, machine, {});
      REQUIRE((plan || machine.max_allocation));
      if (!plan) continue;
      check_plan(trace, machine, *plan);
      // The validator finds nothing wrong with such a plan if nothing lingers, and with few others.
      Plan other = *plan;
      other.trace_digest = digest(without);
      if (violations_of(without, other).empty()) ++kept;
      if (planner.name != "best") continue;
      const Result<Plan> careless = planner.make(without, machine, {});
      REQUIRE(careless);
      Plan tried = *careless;
      tried.trace_digest = digest(trace);
      if (!validate(trace, tried).empty()) ++saved;
    }
  }
  CHECK(kept > 0);
  CHECK(saved > planner_rounds / 4);
}

TEST_CASE("with room for everything nothing moves but inputs and what the host reads") {
  std::mt19937_64 random(21);
  for (int round = 0; round < 400; ++round) {
    Trace trace = test::random_trace(random, random_options(random));
    std::mt19937_64 of_lingering(static_cast<std::uint64_t>(round));
    if (round % 2 == 1) test::add_lingering(trace, of_lingering, 0.5);
    Machine machine = test::random_machine(random, Bytes{1});
    machine.max_allocation.reset();
    Bytes inputs;
    Bytes written_and_read;
    for (std::size_t t = 0; t < trace.tensors.size(); ++t) {
      bool used = false;
      bool first_is_write = false;
      for (const TraceOperation& operation : trace.operations) {
        for_each_access(operation, [&](TensorId id, Access access) {
          if (index(id) != t) return;
          if (!used) first_is_write = access == Access::write;
          used = true;
        });
      }
      if (used && !first_is_write && trace.tensors[t].kind == TensorKind::input) inputs += trace.tensors[t].bytes;
    }
    for (const HostRead& read : trace.host_reads) written_and_read += trace.tensors[index(read.tensor)].bytes;
    Bytes everything;
    for (const TraceTensor& tensor : trace.tensors) everything += round_up(tensor.bytes, machine.alignment);
    machine.device_budget = everything + Bytes{1000};
    for (const NamedPlanner& planner : planners()) {
      const bool moves_anyway = planner.name == "per-operation" || planner.name == "excess";
      if (moves_anyway || planner.name.starts_with("vdnn-")) continue;
      CAPTURE(round);
      CAPTURE(planner.name);
      const Result<Plan> plan = planner.make(trace, machine, {});
      REQUIRE(plan);
      CHECK(plan->predicted.h2d == inputs);
      CHECK(plan->predicted.d2h <= written_and_read);
    }
  }
}

TEST_CASE("stays never need more bytes than they were asked to") {
  std::mt19937_64 random(22);
  for (int round = 0; round < 2000; ++round) {
    Trace trace = test::random_trace(random, random_options(random));
    if (round % 2 == 1) test::add_lingering(trace, random, 0.5);
    const Machine machine = random_machine_with_arenas(trace, random);
    const Result<PlanningCase> planning = make_planning_case(trace, machine);
    if (!planning) continue;
    const std::uint64_t least = planning->liveness.largest_bundle.value;
    const std::uint64_t bytes = least + test::below_or_equal(random, planning->budget - least);
    CHECK(load_of(*planning, on_demand_stays(*planning, Victim::least_recently_used, bytes)) <= bytes);
    CHECK(load_of(*planning, on_demand_stays(*planning, Victim::used_furthest_ahead, bytes)) <= bytes);
    OverlapLedger ledger(*planning);
    for (const std::uint64_t stay_bytes : {bytes, bytes / 2, std::uint64_t{0}}) {
      CHECK(load_of(*planning, overlap_stays(ledger, {bytes, stay_bytes})) <= bytes);
    }
    for (Absence& absence : ledger.absences) {
      absence.stays = !absence.is_arrival && one_of(random, 2) == 0;
      absence.leaves = absence.first;
      if (!absence.is_arrival)
        absence.leaves += static_cast<std::uint32_t>(one_of(random, absence.end - absence.first + 1));
      absence.returns = absence.leaves + static_cast<std::uint32_t>(one_of(random, absence.end - absence.leaves + 1));
      if (absence.lingers) absence.returns = absence.end;
      absence.queued = absence.returns;
      if (absence.returns == absence.leaves && !absence.is_arrival) absence.stays = true;
    }
    let_go_until_it_fits(ledger, bytes);
    CHECK(load_of(*planning, stays_of(ledger)) <= bytes);
  }
}

#ifndef SWAPMM_TEST_IS_SLOW  // half a minute, and as much of the same code as with random traces
namespace {

Trace read_g10(const std::string& name) {
  std::ifstream file(std::string(SWAPMM_TEST_DATA) + "/traces/g10/" + name);
  REQUIRE_MESSAGE(file.good(), name);
  Result<Trace> trace = read_trace(file);
  REQUIRE(trace);
  return *std::move(trace);
}

}  // namespace

TEST_CASE("real traces have valid plans at every budget") {
  struct Real {
    const char* trace;
    std::uint64_t percent;  // of what it needs
  };
  std::vector<Real> reals{{"VIT_b512.json", 35}};
  if (test::is_thorough()) reals.insert(reals.end(), {{"BERT_Base_b256.json", 50}, {"VIT_b512.json", 70}});
  for (const Real& real : reals) {
    CAPTURE(real.trace);
    CAPTURE(real.percent);
    const Trace trace = read_g10(real.trace);
    Machine machine;
    machine.alignment = Bytes{256};
    machine.h2d.bytes_per_second = 15'754'000'000;
    machine.d2h.bytes_per_second = 15'754'000'000;
    const Bytes peak = analyze_liveness(trace, machine.alignment).peak;
    machine.device_budget = Bytes{peak.value / 100 * real.percent};
    std::optional<Plan> per_operation;
    for (const NamedPlanner& planner : planners()) {
      CAPTURE(planner.name);
      const Result<Plan> plan = planner.make(trace, machine, {});
      REQUIRE(plan);
      check_plan(trace, machine, *plan);
      if (!per_operation) per_operation = *plan;
      CHECK(!is_worse(*plan, *per_operation));
    }
  }
}
#endif
