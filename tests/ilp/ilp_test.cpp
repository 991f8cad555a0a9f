// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <chrono>
#include <fstream>
#include <limits>
#include <random>
#include <string>

#include <swapmm/formats/trace_json.hpp>
#include <swapmm/plan/ilp.hpp>
#include <swapmm/plan/ilp/orders.hpp>
#include <swapmm/plan/ilp/slots.hpp>
#include <swapmm/plan/validate.hpp>

#include "ilp/optimum.hpp"
#include "support/effort.hpp"
#include "support/exact_search.hpp"
#include "support/plain_traces.hpp"
#include "support/random_trace.hpp"
#include "support/tiny_instance.hpp"
#include "test_data.hpp"

using namespace swapmm;
using namespace swapmm::planning;
using test::machine_of;
using test::one_of;
using test::operation;
using test::tensor;

namespace {

constexpr int part = 5;  ///< of the rounds are enough where they are slow

constexpr TensorId A{0}, B{1}, C{2};

/// Optimum by the integer program; the plan must have it.
std::int64_t optimum(const Trace& trace, const Machine& machine) {
  const IlpResult result = test::proven_optimum(trace, machine);
  CHECK(result.lower_bound == result.plan.predicted.iteration);
  CHECK(result.plan.predicted.lower_bound == result.lower_bound);
  CHECK(result.gap == 0);
  return result.plan.predicted.iteration.count();
}

bool is_worse(const Plan& a, const Plan& b) {
  if (a.predicted.iteration != b.predicted.iteration) return a.predicted.iteration > b.predicted.iteration;
  return a.predicted.h2d + a.predicted.d2h > b.predicted.h2d + b.predicted.d2h;
}

}  // namespace

TEST_CASE("ilp is a planner that a program hands over, and make_plan says what to link") {
  Trace trace;
  trace.tensors = {tensor(10), tensor(10)};
  trace.operations = {operation(20, {A}), operation(20, {}), operation(20, {B})};
  CHECK(planners().back().name == "best");
  const Result<Plan> refused = make_plan("ilp", trace, machine_of(10));
  REQUIRE(!refused);
  CHECK(refused.problem().message.find("coinor-libcbc-dev") != std::string::npos);
  CHECK(refused.problem().message.find("swapmm::ilp") != std::string::npos);

  CHECK(refused.problem().message.find("swapmm::ilp_planner()") != std::string::npos);

  CHECK(ilp_planner().name == "ilp");
  const Result<Plan> plan = ilp_planner().make(trace, machine_of(10), {});
  REQUIRE(plan);
  CHECK(plan->planner == "ilp");
  CHECK(plan->predicted.iteration.count() == 70);
  CHECK(plan->predicted.lower_bound.count() == 70);
}

TEST_CASE("optima that can be worked out by hand are proven") {
  Trace trace;
  trace.tensors = {tensor(10), tensor(10)};
  trace.operations = {operation(10, {A}), operation(10, {B})};
  CHECK(optimum(trace, machine_of(10)) == 40);
  CHECK(optimum(trace, machine_of(20)) == 20);
  trace.operations = {operation(20, {A}), operation(20, {}), operation(20, {B})};
  CHECK(optimum(trace, machine_of(10)) == 70);
  trace.operations = {operation(5, {}, {}, {A}), operation(5, {}, {}, {B})};
  CHECK(optimum(trace, machine_of(10)) == 50);
  Machine half = machine_of(10);
  half.duplex = Duplex::half;
  CHECK(optimum(trace, half) == 50);
  trace.tensors = {tensor(10, TensorKind::input)};
  trace.operations = {operation(20, {A}), operation(5, {})};
  CHECK(optimum(trace, machine_of(100)) == 35);
}

TEST_CASE("a tensor may leave and come back between two operations, so that others change places meanwhile") {
  // Three layers forward and back; two weights fit only while all activations are away. So at the turn of the weights
  // the gradient goes out and comes back, although the operations on both sides use it.
  Trace trace;
  trace.tensors.assign(3, tensor(64));
  trace.tensors.push_back(tensor(16, TensorKind::input));
  for (int i = 0; i < 5; ++i) trace.tensors.push_back(tensor(16, TensorKind::transient));
  const auto id = [](std::uint32_t i) { return TensorId{i}; };
  trace.operations = {operation(35, {id(0), id(3)}, {id(4)}),          operation(38, {id(1), id(4)}, {id(5)}),
                      operation(10, {id(2), id(5)}, {id(6)}),          operation(56, {id(5), id(6)}, {id(8)}, {id(2)}),
                      operation(18, {id(4), id(8)}, {id(7)}, {id(1)}), operation(54, {id(3), id(7)}, {}, {id(0)})};
  const Machine machine = machine_of(136);
  const Result<IlpResult> result = plan_by_ilp(trace, machine);
  REQUIRE(result);
  CHECK(validate(trace, result->plan).empty());
  CHECK(to_string(result->status) == to_string(IlpStatus::optimal));
  const auto out_and_in_within_a_gap = [&] {  // of the gradient after the fourth operation
    std::size_t arrivals = 0;
    for (const Command& command : result->plan.commands) {
      if (command.tensor == id(8) && has_place(command.kind)) ++arrivals;
    }
    return arrivals == 2;
  };
  CHECK(out_and_in_within_a_gap());
  IlpOptions without;
  without.order_program = false;
  const Result<IlpResult> between = plan_by_ilp(trace, machine, without);
  REQUIRE(between);
  CHECK(result->plan.predicted.iteration < between->plan.predicted.iteration);
}

TEST_CASE("what fits by bytes and has no places is not called optimal") {
  // Three take turns in two places: each would be in the one and in the other in turn, and in a plan it comes back to
  // the same one. With places that change, 40 out and 40 in for each of them, in two places at a time: 121.
  Trace trace;
  trace.tensors = {tensor(40), tensor(40), tensor(40)};
  trace.operations = {operation(1, {}, {}, {A}), operation(1, {}, {}, {B}), operation(1, {}, {}, {C})};
  Machine machine = machine_of(80);
  Result<IlpResult> result = plan_by_ilp(trace, machine);
  REQUIRE(result);
  CHECK(result->lower_bound.count() == 121);
  CHECK(result->plan.predicted.iteration.count() == 162);
  CHECK(result->gap == doctest::Approx(41.0 / 121));
  CHECK(to_string(result->status) == to_string(IlpStatus::feasible));
  result = plan_by_ilp(trace, machine, {.slots = 0, .gap = 0.5});
  REQUIRE(result);
  CHECK(to_string(result->status) == to_string(IlpStatus::within));
  // With one engine for both directions, the one that stays saves 80 of 240.
  machine.duplex = Duplex::half;
  CHECK(optimum(trace, machine) == 162);
}

TEST_CASE("on tiny instances the integer program proves the optimum that the exact search finds") {
  std::mt19937_64 random(7);
  int compared = 0;
  int optimal = 0;
  for (int round = 0; round < test::effort(180, 3 * part); ++round) {
    const test::TinyInstance tiny = test::random_tiny_instance(random);
    const auto exact = test::least_iteration(tiny.trace, tiny.machine, 200'000);
    if (!exact) continue;
    CAPTURE(round);
    const Result<IlpResult> result = plan_by_ilp(tiny.trace, tiny.machine);
    REQUIRE(result);
    CHECK(validate(tiny.trace, result->plan).empty());
    CHECK(result->lower_bound == exact->iteration);
    CHECK(result->plan.predicted.iteration >= exact->iteration);
    CHECK((result->status == IlpStatus::optimal) == (result->plan.predicted.iteration == exact->iteration));
    if (result->status == IlpStatus::optimal) ++optimal;
    ++compared;
  }
  MESSAGE(optimal, " plans of ", compared, " have it");
  CHECK(compared > test::effort(150, 3 * part));
  CHECK(optimal > compared * 17 / 20);  // the others do not pack
}

TEST_CASE("any number of slots gives a bound, and more of them that divide the same way no smaller one") {
  std::mt19937_64 random(8);
  for (int round = 0; round < test::effort(75, part); ++round) {
    const test::TinyInstance tiny = test::random_tiny_instance(random);
    const auto exact = test::least_iteration(tiny.trace, tiny.machine, 100'000);
    if (!exact) continue;
    CAPTURE(round);
    const Result<PlanningCase> planning = make_planning_case(tiny.trace, tiny.machine);
    REQUIRE(planning);
    const OverlapLedger ledger(*planning);
    std::chrono::nanoseconds bound{0};
    for (std::uint32_t slots = 1; slots <= planning->operations; ++slots) {
      CAPTURE(slots);
      const ilp::SlotModel model = ilp::make_slot_model(ledger, slots, ilp::Rounding::outward);
      const ilp::Solution relaxed = ilp::solve_relaxation(model.program, {});
      REQUIRE(relaxed.outcome == ilp::Outcome::optimal);
      bound = ilp::iteration_bound(model, relaxed.bound);
      CHECK(bound <= exact->iteration);
    }
    // A slot per operation, whole tensors: at least as much.
    const ilp::SlotModel fine = ilp::make_slot_model(ledger, planning->operations, ilp::Rounding::outward);
    const ilp::Solution whole = ilp::solve(fine.program, {.nodes = 10'000});
    REQUIRE(whole.outcome == ilp::Outcome::optimal);
    CHECK(ilp::iteration_bound(fine, whole.bound) >= bound - std::chrono::nanoseconds{1});
    CHECK(ilp::iteration_bound(fine, whole.bound) <= exact->iteration);
  }
}

TEST_CASE("a solver that knows no bound, or finds a program infeasible, proves nothing absurd") {
  ilp::SlotModel slots;
  slots.compute_ns = 1000;
  slots.unit_ns = 1;
  ilp::OrdersModel orders;
  orders.unit_ns = 1;
  constexpr double infinity = std::numeric_limits<double>::infinity();
  for (const double unknown : {-infinity, -1e50, -std::numeric_limits<double>::max()}) {
    CAPTURE(unknown);
    CHECK(ilp::iteration_bound(slots, unknown) == std::chrono::nanoseconds{1000});
    CHECK(ilp::iteration_bound(orders, unknown) == std::chrono::nanoseconds{0});
  }
  for (const double infeasible : {infinity, 1e50, std::numeric_limits<double>::max()}) {
    CAPTURE(infeasible);
    CHECK(ilp::iteration_bound(slots, infeasible) > std::chrono::hours{24 * 365});
    CHECK(ilp::iteration_bound(orders, infeasible) > std::chrono::hours{24 * 365});
  }
}

TEST_CASE("ilp plans are valid and no worse than what was tried first, however soon it is stopped") {
  std::mt19937_64 random(9);
  for (int round = 0; round < test::effort(10, part); ++round) {
    test::RandomTraceOptions options;
    options.operations = 1 + one_of(random, 16);
    options.tensors = 1 + one_of(random, 12);
    options.host_reads = one_of(random, 2) == 0 ? 0.0 : 0.15;
    const Trace trace = test::random_trace(random, options);
    Machine machine = test::random_machine(random, Bytes{1});
    machine.max_allocation.reset();
    const Liveness liveness = analyze_liveness(trace, machine.alignment);
    const std::uint64_t least = std::max<std::uint64_t>(liveness.largest_bundle.value, 1);
    machine.device_budget = Bytes{least + (std::max(least, liveness.peak.value) - least) / 3};
    CAPTURE(round);
    int calls = static_cast<int>(one_of(random, 40));
    PlanningOptions limits;
    limits.go_on = [&](const PlanningProgress& progress) {
      CHECK(progress.iteration >= progress.lower_bound);
      return calls-- > 0;
    };
    const IlpOptions how{.slots = static_cast<std::uint32_t>(one_of(random, 3) == 0 ? 1 + one_of(random, 5) : 0)};
    const Result<IlpResult> result = plan_by_ilp(trace, machine, how, limits);
    REQUIRE(result);
    CHECK(validate(trace, result->plan).empty());
    CHECK(result->gap >= 0);
    for (const char* other : {"belady", "excess-overlap"}) {
      CHECK(!is_worse(result->plan, *make_plan(other, trace, machine)));
      CHECK(result->lower_bound <= make_plan(other, trace, machine)->predicted.iteration);
    }
    if (how.slots == 0 && round % 4 == 0) {
      const IlpOptions quick{.tiny = 8, .windows = {.nodes = 50, .programs = 3}};
      CHECK(plan_by_ilp(trace, machine, quick)->plan == plan_by_ilp(trace, machine, quick)->plan);
    }
  }
}

TEST_CASE(
    "a real trace is planned over slots, better than by excess-overlap, with a bound above the sum of durations") {
  std::ifstream file(std::string(SWAPMM_TEST_DATA) + "/traces/g10/VIT_b512.json");
  const Result<Trace> trace = read_trace(file);
  REQUIRE(trace);
  Machine machine;
  machine.alignment = Bytes{256};
  machine.h2d.bytes_per_second = 15'754'000'000;
  machine.d2h.bytes_per_second = 15'754'000'000;
  const Liveness liveness = analyze_liveness(*trace, machine.alignment);
  machine.device_budget = Bytes{liveness.peak.value / 2};
  const Result<IlpResult> result = plan_by_ilp(*trace, machine, {.slots = 24});
  REQUIRE(result);
  CHECK(validate(*trace, result->plan).empty());
  CHECK(result->lower_bound > result->plan.predicted.compute);
  CHECK(result->status == IlpStatus::feasible);
  CHECK(result->gap < 0.12);
  const Result<Plan> overlapped = make_plan("excess-overlap", *trace, machine);
  REQUIRE(overlapped);
  CHECK(result->plan.predicted.iteration < overlapped->predicted.iteration);
}
