// SPDX-License-Identifier: Apache-2.0
// Windows of a plan that `ilp` decides anew, each exactly.
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <swapmm/plan/ilp.hpp>
#include <swapmm/plan/ilp/search.hpp>
#include <swapmm/plan/ilp/windows.hpp>
#include <swapmm/plan/validate.hpp>

#include "support/effort.hpp"
#include "support/exact_search.hpp"
#include "support/plain_traces.hpp"
#include "support/random_trace.hpp"
#include "support/tiny_instance.hpp"

using namespace swapmm;
using namespace swapmm::planning;

namespace {

/// Only windows: nothing is decided as a whole.
IlpOptions only_windows(std::size_t absences) {
  IlpOptions options;
  options.slot_program = false;
  options.tiny = 0;
  options.windows.absences = absences;
  options.windows.nodes = 50'000;
  return options;
}

IlpOptions no_programs() {
  IlpOptions options;
  options.slot_program = false;
  options.order_program = false;
  return options;
}

/// A training step of some layers, as in tests/bench/planning/steps.cpp.
Trace training_step(std::uint32_t layers, std::mt19937_64& random) {
  Trace trace;
  const auto add = [&](TensorKind kind) {
    const std::uint64_t size = (10 + random() % 21) * (kind == TensorKind::persistent ? 2 : 1);
    trace.tensors.push_back(test::tensor(size, kind));
    return static_cast<TensorId>(trace.tensors.size() - 1);
  };
  const auto duration = [&](std::int64_t factor) { return factor * static_cast<std::int64_t>(5 + random() % 56) / 10; };
  std::vector<TensorId> weights, values{add(TensorKind::input)}, gradients;
  for (std::uint32_t i = 0; i < layers; ++i) weights.push_back(add(TensorKind::persistent));
  for (std::uint32_t i = 0; i < layers; ++i) values.push_back(add(TensorKind::transient));
  gradients.push_back(values.back());
  for (std::uint32_t i = 1; i < layers; ++i) gradients.push_back(add(TensorKind::transient));
  for (std::uint32_t i = 0; i < layers; ++i) {
    trace.operations.push_back(test::operation(duration(12), {weights[i], values[i]}, {values[i + 1]}));
  }
  for (std::uint32_t done = 0; done < layers; ++done) {
    const std::uint32_t i = layers - 1 - done;
    std::vector<TensorId> made;
    if (done + 1 < layers) made.push_back(gradients[done + 1]);
    trace.operations.push_back(test::operation(duration(24), {values[i], gradients[done]}, made, {weights[i]}));
  }
  return trace;
}

Machine machine_for(const Trace& trace, double share) {
  Machine machine = test::machine_of(1);
  const Liveness liveness = analyze_liveness(trace, machine.alignment);
  machine.device_budget = std::max(liveness.largest_bundle,
                                   Bytes{static_cast<std::uint64_t>(static_cast<double>(liveness.peak.value) * share)});
  return machine;
}

}  // namespace

TEST_CASE("what a plan does is a solution of the program over times and orders") {
  std::mt19937_64 random(41);
  int solved = 0;
  int rounds = 0;
  for (; rounds < test::effort(60, 5); ++rounds) {
    const test::TinyInstance tiny = test::random_tiny_instance(random, rounds % 2 == 0 ? 0.8 : 0);
    CAPTURE(rounds);
    const Result<PlanningCase> planning = make_planning_case(tiny.trace, tiny.machine);
    REQUIRE(planning);
    const OverlapLedger ledger(*planning);
    const IlpResult start = plan_by_ilp(tiny.trace, tiny.machine, no_programs()).value();
    const Simulation simulation = simulate(tiny.trace, start.plan);
    const ilp::OrdersModel model = ilp::make_orders_model(ledger, simulation.iteration);
    const ilp::Solution solution =
        ilp::solve(ilp::fixed_to_plan(model, ledger, start.plan, simulation), {.nodes = 1000});
    if (solution.values.empty()) continue;
    ++solved;
    const double time = solution.values[static_cast<std::size_t>(model.iteration)] * model.unit_ns;
    CHECK(time == doctest::Approx(static_cast<double>(simulation.iteration.count())).epsilon(1e-5));
    for (std::size_t id = 0; id < ledger.absences.size(); ++id) {
      const Absence& a = ledger.absences[id];
      if (a.lingers || a.is_arrival) continue;
      const bool returns = std::any_of(start.plan.commands.begin(), start.plan.commands.end(), [&](const Command& c) {
        return c.kind == CommandKind::swap_in && c.tensor == a.tensor &&
               *c.before_operation % planning->operations == a.end % planning->operations;
      });
      CHECK(returns == (solution.values[static_cast<std::size_t>(model.out[id])] > 0.5));
    }
  }
  MESSAGE(solved, " of ", rounds);
  CHECK(solved > rounds * 9 / 10);  // the others repeat themselves after several iterations
}

TEST_CASE("windows have so many absences at most, and each absence that may save something is in one") {
  std::mt19937_64 random(42);
  for (int round = 0; round < 20; ++round) {
    const Trace trace = training_step(2 + static_cast<std::uint32_t>(round % 6), random);
    const Machine machine = machine_for(trace, 0.6);
    const Result<PlanningCase> planning = make_planning_case(trace, machine);
    REQUIRE(planning);
    const OverlapLedger ledger(*planning);
    const std::vector<bool> counted = ilp::may_save(ledger);
    for (const std::size_t most : {4U, 10U, 200U}) {
      CAPTURE(most);
      const auto windows = ilp::windows_of(ledger, most);
      std::vector<bool> seen(ledger.absences.size());
      for (const auto& window : windows) {
        CHECK(!window.empty());
        CHECK(window.size() <= most);
        for (const std::uint32_t id : window) {
          CHECK(counted[id]);
          seen[id] = true;
        }
      }
      if (most == 200) CHECK(seen == counted);
    }
  }
}

TEST_CASE("a window that is all of a tiny instance finds its optimum") {
  std::mt19937_64 random(43);
  int compared = 0;
  int optimal = 0;
  int gained = 0;
  for (int round = 0; round < test::effort(240, 15); ++round) {
    const test::TinyInstance tiny = test::random_tiny_instance(random, round % 2 == 0 ? 0.8 : 0);
    const auto exact = test::least_iteration(tiny.trace, tiny.machine, 100'000);
    if (!exact) continue;
    CAPTURE(round);
    const IlpResult start = plan_by_ilp(tiny.trace, tiny.machine, no_programs()).value();
    const Result<IlpResult> result = plan_by_ilp(tiny.trace, tiny.machine, only_windows(64));
    REQUIRE(result);
    CHECK(validate(tiny.trace, result->plan).empty());
    CHECK(result->notes.empty());
    CHECK(result->plan.predicted.iteration <= start.plan.predicted.iteration);
    CHECK(result->plan.predicted.iteration >= exact->iteration);
    ++compared;
    const auto slack = exact->iteration / 5000;  // smaller gains are not looked for
    if (result->plan.predicted.iteration <= exact->iteration + slack) ++optimal;
    if (result->plan.predicted.iteration < start.plan.predicted.iteration) ++gained;
  }
  MESSAGE(optimal, " plans of ", compared, " have it, ", gained, " are better than the start");
  CHECK(optimal > compared * 17 / 20);
  CHECK(gained > 0);
}

TEST_CASE("windows make plans of small training steps faster") {
  std::mt19937_64 random(44);
  double log_sum = 0;
  int count = 0;
  for (int round = 0; round < test::effort(4, 2); ++round) {
    const Trace trace = training_step(4 + static_cast<std::uint32_t>(round % 2), random);
    const Machine machine = machine_for(trace, 0.6);
    CAPTURE(round);
    IlpOptions without;
    without.windows.most = 0;
    const IlpResult before = plan_by_ilp(trace, machine, without).value();
    IlpOptions with;
    with.windows.absences = 8;
    with.windows.nodes = 300;
    with.windows.programs = 12;
    const Result<IlpResult> after = plan_by_ilp(trace, machine, with);
    REQUIRE(after);
    CHECK(validate(trace, after->plan).empty());
    CHECK(after->notes.empty());
    CHECK(after->plan.predicted.iteration <= before.plan.predicted.iteration);
    CHECK(after->lower_bound <= after->plan.predicted.iteration);
    if (round == 0) CHECK(plan_by_ilp(trace, machine, with)->plan == after->plan);
    log_sum += std::log(static_cast<double>(after->plan.predicted.iteration.count()) /
                        static_cast<double>(before.plan.predicted.iteration.count()));
    ++count;
  }
  const double ratio = std::exp(log_sum / count);
  MESSAGE("time with windows / without, geometric mean: ", ratio);
  CHECK(ratio < 0.995);
}

TEST_CASE("if the solver fails on windows, the plan is the one before, with a note") {
  std::mt19937_64 random(44);
  const Trace trace = training_step(4, random);
  const Machine machine = machine_for(trace, 0.6);
  int calls = 0;
  const ilp::Solver fails{ilp::solve_relaxation, [&](const ilp::Program& program, const ilp::Limits& limits) {
                            return ++calls == 1 ? ilp::solve(program, limits) : ilp::failed("no licence");
                          }};
  const IlpResult start = plan_by_ilp(trace, machine, no_programs()).value();
  const Result<IlpResult> result = ilp::plan_by(fails, trace, machine, only_windows(8), {});
  REQUIRE(result);
  CHECK(result->plan == start.plan);
  CHECK(result->notes == std::vector<std::string>{"the solver failed on the program over orders (no licence): this is "
                                                  "the best plan found without its answer"});
}
