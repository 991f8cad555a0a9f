// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <swapmm/ir/liveness.hpp>
#include <swapmm/plan/planners.hpp>
#include <swapmm/plan/simulate.hpp>
#include <swapmm/plan/v2/bound.hpp>
#include <swapmm/plan/v2/planners.hpp>
#include <swapmm/plan/v2/simulate.hpp>
#include <swapmm/plan/v2/validate.hpp>
#include <swapmm/plan/v2/ways.hpp>
#include <swapmm/plan/validate.hpp>
#include <swapmm/plan/ways.hpp>
#include <swapmm/plan/ways/bound.hpp>
#include <swapmm/plan/ways/program/history.hpp>
#include <swapmm/plan/ways/program/pieces.hpp>

#include "support/bound_of_ways.hpp"
#include "support/effort.hpp"
#include "support/random_trace.hpp"

namespace swapmm::test::ways_property_test {
using std::chrono::nanoseconds;

const int rounds = effort(360, 12);

/// Some operations work in pieces; they access parts of some tensors.
void add_ranges(Trace& trace, std::mt19937_64& random) {
  for (std::uint32_t i = 0; i < trace.operations.size(); ++i) {
    TraceOperation& operation = trace.operations[i];
    operation.in_pieces = chance(random, 0.9);
    std::vector<TensorId> accessed;
    for_each_access(operation, [&](TensorId tensor, Access) { accessed.push_back(tensor); });
    std::ranges::sort(accessed);
    for (const TensorId tensor : accessed) {
      const std::uint64_t bytes = trace.tensors[index(tensor)].bytes.value;
      if (bytes < 2 || chance(random, 0.5)) continue;
      // Few edges, so that accesses meet.
      const std::uint64_t step = (bytes + 3) / 4;
      const std::uint64_t first = one_of(random, (bytes + step - 1) / step) * step;
      const std::uint64_t end = std::min(bytes, first + step * (1 + one_of(random, 3)));
      trace.ranges.push_back({static_cast<OperationId>(i), tensor, Bytes{first}, Bytes{end - first}});
    }
  }
}

/// Some tensors without forms are encoded on their way. Version 2 does not say so.
void encode_on_the_way(Trace& trace, std::mt19937_64& random) {
  for (std::uint32_t t = 0; t < trace.tensors.size(); ++t) {
    TraceTensor& tensor = trace.tensors[t];
    if (!forms_of(trace, static_cast<TensorId>(t)).empty() || chance(random, 0.5)) continue;
    tensor.copied = Bytes{one_of(random, tensor.bytes.value + 1)};
  }
}

/// With operations that may run again, and forms, most of which are smaller than the plain values.
Trace case_with_ways(std::mt19937_64& random) {
  RandomTraceOptions options;
  options.operations = 2 + one_of(random, one_of(random, 4) == 0 ? 30 : 12);
  options.tensors = 2 + one_of(random, 12);
  options.max_bundle = 1 + one_of(random, 4);
  options.max_bytes = 1 + one_of(random, 300);
  options.max_duration = static_cast<std::int64_t>(1 + one_of(random, 200));
  options.host_reads = one_of(random, 2) == 0 ? 0.0 : 0.15;
  Trace trace = random_trace(random, options);
  const double replayable = one_of(random, 3) == 0 ? 0.0 : 0.7;
  for (TraceOperation& operation : trace.operations) operation.replayable = chance(random, replayable);
  const double with_forms = one_of(random, 3) == 0 ? 0.0 : 0.6;
  for (std::uint32_t t = 0; t < trace.tensors.size(); ++t) {
    for (std::uint32_t f = 0; chance(random, with_forms) && f < 2; ++f) {
      const Bytes bytes{1 + one_of(random, trace.tensors[t].bytes.value + 20)};
      trace.forms.push_back({static_cast<TensorId>(t), f == 0 ? "zeros" : "half", bytes,
                             Bytes{one_of(random, bytes.value + 1)}, nanoseconds{one_of(random, 30)},
                             nanoseconds{one_of(random, 30)}});
    }
  }
  if (one_of(random, 3) == 0) add_ranges(trace, random);
  return trace;
}

/// Some of all codings that are possible.
std::vector<Coding> some_codings(const Trace& trace, std::mt19937_64& random, double probability) {
  const planning::ValueHistory history(trace);
  std::vector<Coding> codings;
  const auto n = static_cast<std::uint32_t>(trace.operations.size());
  for (const TensorForm& form : trace.forms) {
    const auto number = static_cast<std::uint32_t>(&form - forms_of(trace, form.tensor).data());
    for (std::uint32_t after = 0; after < n; ++after) {
      for (std::uint32_t before = after + 1; before < n; ++before) {
        if (!history.may_be_coded(form.tensor, after, before) || !chance(random, probability)) continue;
        codings.push_back({form.tensor, number, static_cast<OperationId>(after), static_cast<OperationId>(before)});
      }
    }
  }
  return codings;
}

/// Some of all replays that are possible, with their groups.
std::vector<Replay> some_replays(const Trace& trace, std::mt19937_64& random, double probability) {
  const planning::ValueHistory history(trace);
  std::vector<Replay> replays;
  const auto n = static_cast<std::uint32_t>(trace.operations.size());
  for (std::uint32_t operation = 0; operation < n; ++operation) {
    for (std::uint32_t before = operation + 1; before < n; ++before) {
      if (!history.may_run_again(operation, before) || !chance(random, probability)) continue;
      for (const std::uint32_t member : history.group(operation, before)) {
        const Replay replay{static_cast<OperationId>(member), static_cast<OperationId>(before)};
        if (std::ranges::find(replays, replay) == replays.end()) replays.push_back(replay);
      }
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

/// Calls visit(plan) for the plan of each planner: of `best` in some rounds only, because it takes longer.
template <class Visit>
void for_each_plan(const Trace& trace, const Machine& machine, int round, Visit&& visit) {
  for (const NamedPlanner& planner : planners()) {
    if (planner.name == "best" && round % 8 != 0) continue;
    CAPTURE(planner.name);
    const Result<Plan> plan = planner.make(trace, machine, {});
    REQUIRE(plan);
    visit(*plan);
  }
}

TEST_CASE("no plan with replays and codings is faster than the bound, whether or not values linger") {
  std::mt19937_64 random(2027);
  int above_compute = 0;
  int tight = 0;
  for (int round = 0; round < 3 * rounds; ++round) {
    CAPTURE(round);
    Trace trace = case_with_ways(random);
    trace.ranges.clear();
    // A smaller form may stay on the device, for which only the bound of one operation is made.
    for (TensorForm& form : trace.forms) form.bytes = std::max(form.bytes, trace.tensors[index(form.tensor)].bytes);
    for (TraceOperation& operation : trace.operations) operation.in_pieces = false;
    if (round % 2 == 0) {
      trace.forms.clear();  // no format has both
      add_lingering(trace, random, 0.6);
    }
    WaysBack ways;
    ways.replays = some_replays(trace, random, round % 3 == 0 ? 0.5 : 0.2);
    ways.codings = some_codings(trace, random, round % 4 == 0 ? 0.2 : 0.05);
    const Result<WrittenTrace> written = with_ways(trace, ways);
    REQUIRE(written);
    const Machine machine = random_machine_for(written->trace, random, 110);
    const nanoseconds bound = bound_of_ways(trace, machine);
    nanoseconds best = nanoseconds::max();
    for_each_plan(written->trace, machine, round, [&](const Plan& plan) {
      CHECK(plan.predicted.iteration >= bound);
      best = std::min(best, plan.predicted.iteration);
    });
    if (bound <= compute_of(trace)) continue;
    ++above_compute;
    if (bound * 10 >= best * 9) ++tight;
  }
  CHECK(above_compute > rounds / 2);
  CHECK(tight > rounds / 12);
}

TEST_CASE("plans with any ways are valid in version 2, take as long there, and are not faster than the bound") {
  std::mt19937_64 random(2026);
  int replaying = 0;
  int coding = 0;
  int dividing = 0;
  int above_compute = 0;
  for (int round = 0; round < rounds; ++round) {
    CAPTURE(round);
    const Trace trace = case_with_ways(random);
    const double part = round % 3 == 0 ? 0.5 : 0.1;
    WaysBack ways;
    ways.pieces = planning::possible_pieces(trace, random_machine(random, Bytes{1 + one_of(random, 4000)}));
    if (chance(random, 0.2)) ways.pieces.clear();
    const Result<planning::DividedTrace> divided = planning::with_pieces(trace, ways.pieces);
    REQUIRE(divided);
    ways.replays = some_replays(divided->trace, random, round % 3 == 0 ? 0.5 : 0.3);
    ways.codings = some_codings(divided->trace, random, part / 2);
    for (Coding& coded : ways.codings) coded.tensor = divided->parts[index(coded.tensor)].tensor;
    const Result<WrittenTrace> written = with_ways(trace, ways);
    REQUIRE(written);
    REQUIRE(check_trace(written->trace));
    REQUIRE_FALSE(needs_version_2(written->trace));
    CHECK(written->trace.operations.size() >= trace.operations.size() + ways.replays.size());
    CHECK(written->trace.operations.size() <= trace.operations.size() + ways.replays.size() + 2 * ways.codings.size());
    const Machine machine = random_machine_for(written->trace, random, 110);
    const nanoseconds bound = bound_of_ways(divided->trace, machine);
    above_compute += bound > compute_of(trace) ? 1 : 0;
    const Result<nanoseconds> of_any_pieces = v2::lower_bound(trace, v2::from_version_1(machine));
    REQUIRE(of_any_pieces);
    for_each_plan(written->trace, machine, round, [&](const Plan& plan) {
      CHECK(plan.predicted.iteration >= bound);
      CHECK(plan.predicted.iteration >= *of_any_pieces);
      if (changes_inputs(trace)) return;
      const Result<v2::Plan> as_v2 = v2::from_ways(trace, {ways, plan});
      REQUIRE(as_v2);
      const std::vector<Violation> violations = v2::validate(trace, *as_v2);
      CHECK_MESSAGE(violations.empty(), (violations.empty() ? std::string() : violations.front().message));
      const v2::Simulation predicted = v2::simulate(trace, *as_v2);
      CHECK(predicted.iteration == plan.predicted.iteration);
      CHECK(predicted.links == std::vector<Bytes>{plan.predicted.h2d, plan.predicted.d2h});
      const Result<PlanWithWays> back = v2::to_ways(trace, *as_v2);
      REQUIRE_MESSAGE(back, (back ? std::string() : back.problem().message));
      const Result<WrittenTrace> same = with_ways(trace, back->ways);
      REQUIRE(same);
      CHECK(same->trace == written->trace);
      CHECK(same->steps == written->steps);
      CHECK(same->encoded == written->encoded);
      CHECK(back->plan == plan);
    });
    replaying += ways.replays.empty() ? 0 : 1;
    coding += ways.codings.empty() ? 0 : 1;
    dividing += ways.pieces.empty() ? 0 : 1;
  }
  CHECK(replaying > rounds / 3);
  CHECK(coding > rounds / 5);
  CHECK(dividing > rounds / 10);
  if (!is_slow) CHECK(above_compute > rounds / 100);
}

TEST_CASE("the mixed plan is never slower than the one that only copies, and says how far it may be from the best") {
  std::mt19937_64 random(17);
  int faster = 0;
  int limited_plans = 0;
  for (int round = 0; round < effort(180, 18); ++round) {
    CAPTURE(round);
    const Trace trace = case_with_ways(random);
    const Machine machine = random_machine_for(trace, random, 90);
    const Result<planning::DividedTrace> whole = planning::with_pieces(planning::without_ways(trace), {});
    REQUIRE(whole);
    const Result<Plan> copies = make_plan("best", whole->trace, machine);
    const Result<PlanWithWays> mixed = plan_with_ways(trace, machine);
    REQUIRE(copies);
    REQUIRE(mixed);
    CHECK(mixed->plan.predicted.iteration <= copies->predicted.iteration);
    CHECK(mixed->plan.predicted.lower_bound <= mixed->plan.predicted.iteration);
    CHECK(mixed->plan.predicted.lower_bound >= compute_of(trace));
    faster += mixed->plan.predicted.iteration < copies->predicted.iteration ? 1 : 0;
    // Whatever a plan may use, its bound is for all plans.
    PlanningOptions limits;
    limits.ways = {.recompute = chance(random, 0.5), .compress = chance(random, 0.5), .pieces = false};
    const Result<v2::Plan> limited = v2::make_plan("best", trace, v2::from_version_1(machine), limits);
    if (limited) {
      ++limited_plans;
      CHECK(limited->predicted.lower_bound <= mixed->plan.predicted.iteration);
      CHECK(mixed->plan.predicted.iteration <= limited->predicted.iteration);  // traces are small
      CHECK(limited->predicted.lower_bound >= compute_of(trace));
    } else {  // version 2 has one place in the host for an input and for what it reads
      CHECK(limited.problem().message.ends_with("there is one place in the host for both"));
    }
    const Result<WrittenTrace> replayed = with_ways(trace, mixed->ways);
    REQUIRE(replayed);
    CHECK(validate(replayed->trace, mixed->plan).empty());
  }
  if (!is_slow) CHECK(faster > 0);
  CHECK(limited_plans > 0);
}

TEST_CASE("the bound of a plan that may only copy is for plans that may do more, too") {
  // x leaves for y, and comes back: 200 ns of copies, or an operation of 10 ns that runs again.
  const nanoseconds ten{10};
  Trace trace;
  trace.tensors = {{"s", Bytes{1}, TensorKind::persistent, 0},
                   {"x", Bytes{100}, TensorKind::transient, 0},
                   {"y", Bytes{100}, TensorKind::transient, 0}};
  trace.operations = {{"make x", ten, {TensorId{0}}, {TensorId{1}}, {}},
                      {"make y", ten, {}, {TensorId{2}}, {}},
                      {"use y", ten, {TensorId{2}}, {}, {}},
                      {"use x", ten, {TensorId{1}}, {}, {}}};
  trace.operations[0].replayable = true;
  Machine machine;
  machine.name = "small";
  machine.device_budget = Bytes{130};
  machine.alignment = Bytes{1};
  machine.h2d = machine.d2h = {1'000'000'000, nanoseconds{0}};
  const auto planned = [&](bool recompute) {
    PlanningOptions options;
    options.ways.recompute = recompute;
    const auto plan = v2::make_plan("best", trace, v2::from_version_1(machine), options);
    REQUIRE(plan);
    return plan->predicted;
  };
  const v2::Prediction copies = planned(false);
  const v2::Prediction any = planned(true);
  CHECK(any.iteration.count() == 50);
  CHECK(copies.iteration.count() > 150);
  CHECK(copies.lower_bound <= any.iteration);
  CHECK(copies.lower_bound >= compute_of(trace));
}

TEST_CASE("best has a plan where another planner has one, and none is faster than the bound that another one gives") {
  std::mt19937_64 random(67);
  int above_compute = 0;
  int host_has_two = 0;  // values of an input, which version 2 has one place for
  for (int i = 0; i < rounds / 2; ++i) {
    Trace trace = case_with_ways(random);
    if (trace.ranges.empty()) add_ranges(trace, random);
    const v2::Machine machine = v2::from_version_1(random_machine_for(trace, random, 110));
    nanoseconds fastest = nanoseconds::max();
    nanoseconds largest{0};
    std::string who;
    bool of_best = false;
    for (const NamedPlanner& planner : planners()) {
      const Result<v2::Plan> plan = v2::make_plan(planner.name, trace, machine);
      if (!plan) continue;
      CHECK_MESSAGE(v2::validate(trace, *plan).empty(), "case " << i << ": " << planner.name);
      of_best = of_best || planner.name == "best";
      fastest = std::min(fastest, plan->predicted.iteration);
      if (plan->predicted.lower_bound <= largest) continue;
      largest = plan->predicted.lower_bound;
      who = planner.name;
    }
    CHECK_MESSAGE((of_best || fastest == nanoseconds::max()), "case " << i);
    host_has_two += changes_inputs(trace) && of_best ? 1 : 0;
    CHECK_MESSAGE(largest <= fastest, "case " << i << ": the bound of " << who << " is " << largest.count()
                                              << " ns, and a plan takes " << fastest.count());
    above_compute += largest > compute_of(trace) ? 1 : 0;
  }
  CHECK(above_compute > 0);
  CHECK(host_has_two > 0);
}

TEST_CASE("the bound holds where values are encoded on their way, too, and mixed plans are never slower than copies") {
  std::mt19937_64 random(41);
  int replaying = 0;
  for (int round = 0; round < effort(160, 9); ++round) {
    CAPTURE(round);
    Trace trace = case_with_ways(random);
    encode_on_the_way(trace, random);
    const Result<planning::DividedTrace> whole = planning::with_pieces(trace, {});
    REQUIRE(whole);
    const WaysBack ways{some_replays(whole->trace, random, 0.4), some_codings(whole->trace, random, 0.1), {}};
    const Result<WrittenTrace> written = with_ways(trace, ways);
    REQUIRE(written);
    const Machine machine = random_machine_for(written->trace, random, 110);
    const nanoseconds bound = bound_of_ways(whole->trace, machine);
    for (const NamedPlanner& planner : planners()) {
      if (planner.name == "best" && round % 4 != 0) continue;
      CAPTURE(planner.name);
      const Result<Plan> plan = planner.make(written->trace, machine, {});
      REQUIRE(plan);
      CHECK(validate(written->trace, *plan).empty());
      CHECK(plan->predicted.iteration >= bound);
    }
    if (round % 4 != 0) continue;
    const Result<Plan> copies = make_plan("best", planning::without_ways(whole->trace), machine);
    const Result<PlanWithWays> mixed = plan_with_ways(trace, machine);
    REQUIRE(copies);
    REQUIRE(mixed);
    CHECK(mixed->plan.predicted.iteration <= copies->predicted.iteration);
    CHECK(mixed->plan.predicted.lower_bound <= mixed->plan.predicted.iteration);
    replaying += ways.replays.empty() ? 0 : 1;
  }
  CHECK(replaying > 0);
}

}  // namespace swapmm::test::ways_property_test
