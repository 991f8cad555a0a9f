// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>

#include <swapmm/ir/liveness.hpp>
#include <swapmm/plan/bound.hpp>
#include <swapmm/plan/planners.hpp>
#include <swapmm/plan/simulate.hpp>
#include <swapmm/plan/v2/bound.hpp>
#include <swapmm/plan/v2/planners.hpp>
#include <swapmm/plan/v2/simulate.hpp>
#include <swapmm/plan/v2/validate.hpp>
#include <swapmm/plan/validate.hpp>

#include "support/brute_plans.hpp"
#include "support/effort.hpp"
#include "support/plan_mutations.hpp"
#include "support/random_trace.hpp"
#include "support/seeds.hpp"
#include "support/v2/random_case.hpp"

using namespace swapmm;
using namespace swapmm::test;

namespace {

std::string listed(const std::vector<Violation>& violations) {
  std::string text;
  for (const Violation& violation : violations) {
    text += "rule " + std::to_string(violation.rule) + ": " + violation.message + '\n';
  }
  return text;
}

/// What version 1 refuses, and version 2 does not.
bool only_in_version_1(const Violation& violation) {
  constexpr std::array reasons = {"whose next access is not in writes", "copies a dead value",
                                  "drops a value that is needed again", "has a valid host copy in initial"};
  return std::ranges::any_of(reasons,
                             [&](const char* reason) { return violation.message.find(reason) != std::string::npos; });
}

/// Whether operations change an input that the host reads: version 1 has two host copies of it, version 2 one place.
bool reads_changed_input(const Trace& trace) {
  return std::ranges::any_of(trace.host_reads, [&](const HostRead& read) {
    if (trace.tensors[index(read.tensor)].kind != TensorKind::input) return false;
    return std::ranges::any_of(trace.operations, [&](const TraceOperation& operation) {
      return std::ranges::count(operation.writes, read.tensor) + std::ranges::count(operation.updates, read.tensor) !=
             0;
    });
  });
}

}  // namespace

TEST_CASE("version 2 judges plans of version 1, valid ones and others, as version 1 does") {
  const Seeds seeds = test::seeds(effort(1500, 10));
  int valid = 0;
  int invalid = 0;
  for (std::uint64_t seed = seeds.first; seed < seeds.first + seeds.count; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    RandomTraceOptions options;
    options.operations = 1 + one_of(random, 8);
    options.tensors = 1 + one_of(random, 5);
    options.host_reads = chance(random, 0.5) ? 0.3 : 0.0;
    const Trace trace = random_trace(random, options);
    if (reads_changed_input(trace)) continue;
    const Machine machine = random_machine(random, analyze_liveness(trace, Bytes{64}).largest_bundle);
    const NamedPlanner& planner = planners()[one_of(random, planners().size() - 1)];  // best takes longest
    Result<Plan> plan = planner.make(trace, machine, {});
    if (!plan) continue;
    for (int change = 0; change < 4; ++change) {
      const auto old = validate(trace, *plan);
      const auto found = swapmm::v2::validate(trace, swapmm::v2::from_version_1(*plan));
      CAPTURE(listed(old));
      CAPTURE(listed(found));
      if (old.empty()) {
        CHECK(found.empty());
        ++valid;
      } else {
        const bool more_rules = std::ranges::all_of(old, only_in_version_1);
        CHECK((more_rules || !found.empty()));
        ++invalid;
      }
      mutate(random, trace, *plan);
    }
  }
  CHECK(valid > 0);
  CHECK(invalid > 0);
}

TEST_CASE("plans for many memories are valid, and no faster than the bound") {
  const Seeds seeds = test::seeds(effort(3000, 10));
  int stalled = 0;
  int with_many = 0;
  for (std::uint64_t seed = seeds.first; seed < seeds.first + seeds.count; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    const general::Case one = general::random_case(random);
    CAPTURE(listed(swapmm::v2::validate(one.trace, one.plan)));
    CHECK(swapmm::v2::validate(one.trace, one.plan).empty());
    CHECK(one.plan.predicted.lower_bound <= one.plan.predicted.iteration);
    CHECK(one.plan.predicted.lower_bound >= one.plan.predicted.compute);
    stalled += one.plan.predicted.iteration > one.plan.predicted.compute ? 1 : 0;
    with_many += one.plan.machine.memories.size() > 2 ? 1 : 0;
  }
  CHECK(stalled > 0);
  CHECK(with_many > 0);
}

TEST_CASE("planners that spread what leaves over many memories make valid plans, and best is never worse than belady") {
  const Seeds seeds = test::seeds(effort(400, 10));
  int spread = 0;
  int faster = 0;
  for (std::uint64_t seed = seeds.first; seed < seeds.first + seeds.count; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    const general::Case one = general::random_case(random);
    const auto belady = swapmm::v2::make_plan("belady", one.trace, one.plan.machine);
    for (const NamedPlanner& planner : planners()) {
      CAPTURE(planner.name);
      const auto plan = swapmm::v2::make_plan(planner.name, one.trace, one.plan.machine);
      if (!plan) {
        CHECK((planner.name != "best" || !belady));
        CHECK(plan.problem().message.find("mistake") == std::string::npos);
        continue;
      }
      CAPTURE(listed(swapmm::v2::validate(one.trace, *plan)));
      CHECK(swapmm::v2::validate(one.trace, *plan).empty());
      CHECK(plan->planner == planner.name);
      CHECK(plan->predicted.lower_bound <= plan->predicted.iteration);
      CHECK(plan->predicted.iteration == swapmm::v2::simulate(one.trace, *plan).iteration);
      if (planner.name != "best" || !belady) continue;
      CHECK(plan->predicted.iteration <= belady->predicted.iteration);
      ++spread;
      if (plan->predicted.iteration < belady->predicted.iteration) ++faster;
    }
  }
  CHECK(spread > 0);
  CHECK(faster > 0);
}

TEST_CASE("dividing a tensor keeps a plan valid, and the bytes on each link") {
  const Seeds seeds = test::seeds(effort(500, 10));
  int divided = 0;
  for (std::uint64_t seed = seeds.first; seed < seeds.first + seeds.count; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    general::Case one = general::random_case(random);
    // A piece that an operation does not access may die while the tensor does not: only whole accesses are compared.
    if (!one.trace.ranges.empty()) continue;
    const auto before = swapmm::v2::simulate(one.trace, one.plan);
    general::divide(random, one);
    if (one.plan.pieces.empty()) continue;
    ++divided;
    CAPTURE(listed(swapmm::v2::validate(one.trace, one.plan)));
    CHECK(swapmm::v2::validate(one.trace, one.plan).empty());
    CHECK(swapmm::v2::simulate(one.trace, one.plan).links == before.links);
  }
  CHECK(divided > 0);
}

TEST_CASE("a machine that version 1 can describe has the plans of all planners, with the same time") {
  const Seeds seeds = test::seeds(effort(60, 10));
  for (std::uint64_t seed = seeds.first; seed < seeds.first + seeds.count; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    const Trace trace = random_trace(random);
    if (reads_changed_input(trace)) continue;
    const Machine machine = random_machine_for(trace, random, 60);
    const swapmm::v2::Machine same = swapmm::v2::from_version_1(machine);
    const Result<Machine> back = swapmm::v2::to_version_1(same);
    REQUIRE(back);
    CHECK(*back == machine);
    for (const NamedPlanner& planner : planners()) {
      CAPTURE(planner.name);
      const Result<Plan> old = planner.make(trace, machine, {});
      const auto plan = swapmm::v2::make_plan(planner.name, trace, same);
      REQUIRE(old.has_value() == plan.has_value());
      if (!old) continue;
      CHECK(plan->commands == swapmm::v2::from_version_1(*old).commands);
      CHECK(plan->predicted.iteration == old->predicted.iteration);
      CHECK(plan->predicted.lower_bound <= old->predicted.lower_bound);
      // Pieces of tensors may need less room than whole ones, which are padded.
      if (machine.alignment != Bytes{1}) continue;
      CHECK(plan->predicted.lower_bound == old->predicted.lower_bound);
      CHECK(swapmm::v2::lower_bound(trace, same).value() == lower_bound(trace, machine).value());
    }
  }
}
