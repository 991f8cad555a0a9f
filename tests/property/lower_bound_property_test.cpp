// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <optional>
#include <random>
#include <string>

#include <swapmm/formats/trace_json.hpp>
#include <swapmm/ir/liveness.hpp>
#include <swapmm/plan/planners.hpp>
#include <swapmm/plan/relaxation/lower_bound.hpp>
#include <swapmm/plan/relaxation/swap_model.hpp>
#include <swapmm/plan/relaxation/swap_prices.hpp>
#include <swapmm/plan/simulate.hpp>
#include <swapmm/plan/validate.hpp>

#include "support/brute_plans.hpp"
#include "support/effort.hpp"
#include "support/random_trace.hpp"
#include "test_data.hpp"

using namespace swapmm;
using namespace swapmm::planning;
using std::chrono::nanoseconds;
using test::one_of;

namespace {

constexpr std::uint64_t most_percent = 125;  // more than everything at once; not always a multiple of the alignment

const int lower_bound_rounds = test::effort(1500, 20);

Trace random_case(std::mt19937_64& random) {
  test::RandomTraceOptions options;
  options.operations = 1 + one_of(random, one_of(random, 4) == 0 ? 40 : 10);
  options.tensors = 1 + one_of(random, one_of(random, 4) == 0 ? 30 : 7);
  options.max_bundle = 1 + one_of(random, 4);
  options.max_bytes = one_of(random, 3) == 0 ? 100'000 : 1 + one_of(random, 200);
  options.max_duration = static_cast<std::int64_t>(1 + one_of(random, 200));
  options.host_reads = one_of(random, 2) == 0 ? 0.0 : 0.15;
  Trace trace = test::random_trace(random, options);
  if (one_of(random, 3) == 0) test::add_lingering(trace, random, 0.6);
  return trace;
}

/// On a grid of all parts, with no value that is away twice, the bound is the linear program's optimum.
bool has_exact_bound(const Trace& trace, const Machine& machine) {
  if (trace.operations.size() > 24) return false;
  const Result<PlanningCase> planning = make_planning_case(trace, machine);
  if (!planning) return false;
  const OverlapLedger ledger(*planning);
  return std::all_of(ledger.versions.begin(), ledger.versions.end(),
                     [](const Version& version) { return version.absences <= 1; });
}

}  // namespace

TEST_CASE("no plan of any planner for any random trace and machine is faster than the lower bound") {
  std::mt19937_64 random(41);
  int above_compute = 0;
  int tight = 0;
  for (int round = 0; round < lower_bound_rounds; ++round) {
    CAPTURE(round);
    const Trace trace = random_case(random);
    const Machine machine = test::random_machine_for(trace, random, most_percent);
    const Result<nanoseconds> bound = lower_bound(trace, machine);
    REQUIRE(bound);
    CHECK(*bound >= test::compute_of(trace));
    nanoseconds best = nanoseconds::max();
    for (const NamedPlanner& planner : planners()) {
      if (planner.name == "best" && round % 4 != 0) continue;  // takes longer than all others together
      CAPTURE(planner.name);
      const Result<Plan> plan = planner.make(trace, machine, {});
      REQUIRE(plan);
      CHECK(plan->predicted.iteration >= *bound);
      CHECK(plan->predicted.lower_bound <= plan->predicted.iteration);
      best = std::min(best, plan->predicted.iteration);
    }
    if (*bound > test::compute_of(trace)) ++above_compute;
    if (*bound > test::compute_of(trace) && best - *bound <= nanoseconds{1}) ++tight;
  }
  CHECK(above_compute > lower_bound_rounds / 4);
  CHECK(tight > lower_bound_rounds / 12);  // the bound is reached often enough to mean something
}

TEST_CASE("no plan written straight from the rules is faster, either, whatever the budget leaves over") {
  std::mt19937_64 random(42);
  int checked = 0;
  for (int round = 0; round < lower_bound_rounds; ++round) {
    CAPTURE(round);
    const Trace trace = random_case(random);
    Machine machine = test::random_machine_for(trace, random, most_percent);
    machine.device_budget += Bytes{one_of(random, 64)};
    const std::optional<Plan> plan = test::brute_plan(trace, machine);
    const Result<nanoseconds> bound = lower_bound(trace, machine);
    if (!plan || !bound) continue;
    ++checked;
    CHECK(simulate(trace, *plan).iteration >= *bound);
  }
  CHECK(checked > lower_bound_rounds / 2);
}

TEST_CASE("any prices make a lower bound") {
  std::mt19937_64 random(43);
  for (int round = 0; round < lower_bound_rounds; ++round) {
    CAPTURE(round);
    const Trace trace = random_case(random);
    const Machine machine = test::random_machine_for(trace, random, most_percent);
    const Result<PlanningCase> planning = make_planning_case(trace, machine);
    REQUIRE(planning);
    const OverlapLedger ledger(*planning);
    const relaxation::SwapModel model = relaxation::make_swap_model(*planning, ledger);
    relaxation::SwapPricing pricing(model, 1 + one_of(random, 20));
    const Result<Plan> plan = make_plan("excess-overlap", trace, machine);
    REQUIRE(plan);
    for (int prices_tried = 0; prices_tried < 4; ++prices_tried) {
      relaxation::SwapPrices prices;
      const double scale = std::ldexp(1.0, static_cast<int>(one_of(random, 8)) - 6);
      const auto price = [&] {
        return test::chance(random, 0.6) ? 0.0 : static_cast<double>(one_of(random, 1001)) / 1000;
      };
      for (std::uint32_t part = 0; part < model.parts(); ++part) {
        prices.room.push_back(price() * scale);
        prices.in.push_back(price());
        prices.out.push_back(price());
      }
      CHECK(pricing.respond(prices).bound <= static_cast<double>(plan->predicted.iteration.count()));
    }
  }
}

TEST_CASE("more budget, more bandwidth or less latency never raises an exact bound") {
  std::mt19937_64 random(44);
  int compared = 0;
  for (int round = 0; round < lower_bound_rounds; ++round) {
    CAPTURE(round);
    const Trace trace = random_case(random);
    const Machine machine = test::random_machine_for(trace, random, most_percent);
    if (!has_exact_bound(trace, machine)) continue;
    const Result<nanoseconds> bound = lower_bound(trace, machine);
    REQUIRE(bound);
    if (*bound == test::compute_of(trace)) continue;
    Machine better = machine;
    switch (one_of(random, 4)) {
      case 0: better.device_budget += Bytes{1 + machine.device_budget.value / 8}; break;
      case 1: better.h2d.bytes_per_second *= 2; break;
      case 2: better.d2h.bytes_per_second *= 2; break;
      default: better.h2d.latency = better.d2h.latency = nanoseconds{0};
    }
    const Result<nanoseconds> easier = lower_bound(trace, better);
    REQUIRE(easier);
    // What solving leaves open, and a whole nanosecond.
    const auto slack = nanoseconds{1 + static_cast<std::int64_t>(static_cast<double>(bound->count()) * 1e-6)};
    CHECK(*easier <= *bound + slack);
    ++compared;
  }
  CHECK(compared > lower_bound_rounds / 10);
}

TEST_CASE("real traces: near the bound that a fine program gives, and below the best plans known") {
  struct Known {
    const char* name;
    std::uint64_t percent;
    double fine_bound;  ///< milliseconds
    double best_plan;
  };
  constexpr Known all_known[] = {
      {"VIT_b512.json", 35, 2831.7, 2845.7},       {"VIT_b512.json", 50, 2596.3, 2612.5},
      {"VIT_b512.json", 70, 2558.6, 2558.6},       {"BERT_Base_b256.json", 35, 7538.0, 7553.0},
      {"BERT_Base_b256.json", 50, 7285.5, 7285.5},
  };
  for (const Known& known : all_known) {
    CAPTURE(known.name);
    CAPTURE(known.percent);
    std::ifstream file(std::string(SWAPMM_TEST_DATA) + "/traces/g10/" + known.name);
    REQUIRE(file.good());
    const Result<Trace> trace = read_trace(file);
    REQUIRE(trace);
    Machine machine;
    machine.alignment = Bytes{256};
    machine.h2d.bytes_per_second = 15'754'000'000;
    machine.d2h.bytes_per_second = 15'754'000'000;
    const Liveness liveness = analyze_liveness(*trace, machine.alignment);
    machine.device_budget = Bytes{liveness.peak.value / 100 * known.percent};
    const Result<nanoseconds> bound = lower_bound(*trace, machine);
    REQUIRE(bound);
    const double milliseconds = static_cast<double>(bound->count()) / 1e6;
    CHECK(milliseconds >= known.fine_bound * 0.99);
    CHECK(milliseconds <= known.best_plan + 0.05);  // it is known to a tenth
  }
}
