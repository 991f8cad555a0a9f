// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <swapmm/ir/liveness.hpp>
#include <swapmm/plan/planners.hpp>
#include <swapmm/plan/v2/bound.hpp>
#include <swapmm/plan/v2/planners.hpp>
#include <swapmm/plan/v2/validate.hpp>

#include "support/effort.hpp"
#include "support/exact_search.hpp"
#include "support/plain_traces.hpp"
#include "support/random_trace.hpp"
#include "support/seeds.hpp"
#include "support/v2/exact_plans.hpp"

namespace swapmm::v2::exact_property_test {

using test::below_or_equal;
using test::chance;
using test::effort;
using test::machine_of;
using test::one_of;
using test::operation;
using test::Seeds;
using test::tensor;
using test::general::ExactPlan;
using test::general::fastest_plan;

/// Instances that need more are left out.
constexpr std::uint64_t most_plans = 1000;

constexpr std::uint64_t byte_per_ns = 1'000'000'000;
constexpr TensorId A{0}, B{1}, C{2};

std::int64_t least(const Trace& trace, const Machine& machine) {
  REQUIRE(check_trace(trace));
  const auto found = fastest_plan(trace, machine, 100'000);
  REQUIRE(found);
  CHECK(v2::validate(trace, found->plan).empty());
  return found->iteration.count();
}
std::int64_t least(const Trace& trace, std::uint64_t budget) {
  return least(trace, from_version_1(machine_of(budget)));
}

/// A device, a host, and a near memory with a fast link of its own in each direction.
Machine with_near(std::uint64_t device, std::uint64_t near) {
  Machine machine = from_version_1(machine_of(device));
  machine.memories.push_back({"near", Bytes{near}, Bytes{1}, std::nullopt});
  machine.links.push_back({"near-device", MemoryId{2}, MemoryId{0}, 10 * byte_per_ns, {}, std::nullopt, {}});
  machine.links.push_back({"device-near", MemoryId{0}, MemoryId{2}, 10 * byte_per_ns, {}, std::nullopt, {}});
  return machine;
}

struct Tiny {
  Trace trace;
  Machine machine;
};

/// 2 to 4 operations and 2 or 3 tensors, on a device that holds the largest bundle but not everything, with a host,
/// and with a near memory of up to two tensors or none.
Tiny random_tiny(std::mt19937_64& random, bool with_near_memory) {
  for (;;) {
    test::RandomTraceOptions options;
    options.operations = 2 + one_of(random, 3);
    options.tensors = 2 + one_of(random, 2);
    options.max_bundle = 2;
    options.max_bytes = 3;
    options.max_duration = static_cast<std::int64_t>(1 + one_of(random, 60));
    options.host_reads = 0;
    Tiny tiny{test::random_trace(random, options), {}};
    const bool equal = chance(random, 0.5);
    for (TraceTensor& one : tiny.trace.tensors) {
      if (equal || one.bytes == Bytes{0}) one.bytes = Bytes{1};
    }
    const Liveness liveness = analyze_liveness(tiny.trace, Bytes{1});
    if (liveness.peak <= liveness.largest_bundle) continue;
    const std::uint64_t span = liveness.peak.value - liveness.largest_bundle.value;
    tiny.machine = with_near(liveness.largest_bundle.value + below_or_equal(random, span - 1), 1 + one_of(random, 4));
    for (Link& link : tiny.machine.links) {
      // A byte takes 5 to 30 ns from and to the host, and a part of that from and to the near memory.
      const bool is_near = index(link.from) == 2 || index(link.to) == 2;
      link.bytes_per_second = byte_per_ns / (is_near ? 1 + one_of(random, 10) : 5 + one_of(random, 26));
      if (chance(random, 0.2)) link.latency = std::chrono::nanoseconds{one_of(random, 8)};
    }
    if (!with_near_memory) {
      tiny.machine.links.resize(2);
      tiny.machine.memories.resize(2);
    }
    return tiny;
  }
}

void share_engines(std::mt19937_64& random, Machine& machine) {
  if (!chance(random, 0.25)) return;
  machine.engines.push_back({"copies", std::nullopt});
  for (Link& link : machine.links) {
    if (chance(random, 0.7)) link.engine = id_at<EngineId>(machine.engines.size() - 1);
  }
}

TEST_CASE("v2: the exact search finds what can be worked out by hand") {
  Trace trace;
  // The same as in version 1.
  trace.tensors = {tensor(10), tensor(10)};
  trace.operations = {operation(10, {A}), operation(10, {B})};
  CHECK(least(trace, 10) == 40);
  CHECK(least(trace, 20) == 20);
  // In the near memory one of them comes in 1 ns, or both do.
  CHECK(least(trace, with_near(10, 10)) == 20 + 10 + 1);
  CHECK(least(trace, with_near(10, 20)) == 20 + 1 + 1);
  trace.operations = {operation(20, {A}), operation(20, {}), operation(20, {B})};
  CHECK(least(trace, 10) == 70);
  // Written values go out and come back: 4 copies in turn. With a near memory for one: 2 of them take 1 ns each.
  trace.operations = {operation(5, {}, {}, {A}), operation(5, {}, {}, {B})};
  CHECK(least(trace, 10) == 50);
  CHECK(least(trace, with_near(10, 10)) == 10 + 20 + 2);
  CHECK(least(trace, with_near(10, 20)) == 10 + 4);
  trace.tensors.push_back(tensor(10));
  trace.operations = {operation(5, {A}), operation(5, {B}), operation(5, {C})};
  CHECK(least(trace, 20) == 30);
  // A new input waits for the end of the iteration before, and comes from the host.
  trace.tensors = {tensor(10, TensorKind::input)};
  trace.operations = {operation(20, {A}), operation(5, {})};
  CHECK(least(trace, with_near(100, 100)) == 35);
}

TEST_CASE("v2: the exact search of version 2 finds what that of version 1 finds") {
  const Seeds seeds = test::seeds(effort(250, 10));
  int compared = 0;
  int equal = 0;
  for (std::uint64_t seed = seeds.first; seed < seeds.first + seeds.count; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    const Tiny tiny = random_tiny(random, false);
    const Result<swapmm::Machine> old = to_version_1(tiny.machine);
    REQUIRE(old);
    const auto expected = test::least_iteration(tiny.trace, *old, 20'000);
    if (!expected) continue;
    const auto found = fastest_plan(tiny.trace, tiny.machine, most_plans);
    if (!found) continue;
    ++compared;
    CHECK(found->iteration >= expected->iteration);
    // Version 1 takes any bytes that are free, wherever they are, and in other places in each iteration.
    equal += found->iteration == expected->iteration ? 1 : 0;
  }
  MESSAGE(compared, " compared, ", equal, " equal");
  CHECK(equal > compared * 3 / 4);
  CHECK(compared > static_cast<int>(seeds.count) / 3);
}

TEST_CASE("v2: lower bound <= optimum <= every planner, on tiny instances with three memories") {
  const Seeds seeds = test::seeds(effort(400, 20));
  int compared = 0;
  double of_optimum = 0;
  int bound_above_compute = 0;
  int near_used = 0;
  std::uint64_t simulated = 0;
  std::map<std::string, int> optimal;
  for (std::uint64_t seed = seeds.first; seed < seeds.first + seeds.count; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    Tiny tiny = random_tiny(random, chance(random, 0.8));
    share_engines(random, tiny.machine);
    const auto exact = fastest_plan(tiny.trace, tiny.machine, most_plans);
    if (!exact) continue;
    ++compared;
    simulated += exact->simulated;
    const auto bound = v2::lower_bound(tiny.trace, tiny.machine);
    REQUIRE(bound);
    CHECK(*bound <= exact->iteration);
    of_optimum +=
        static_cast<double>(bound->count()) / static_cast<double>(std::max<std::int64_t>(exact->iteration.count(), 1));
    bound_above_compute += *bound > test::compute_of(tiny.trace) ? 1 : 0;
    near_used += std::ranges::any_of(exact->plan.commands,
                                     [](const Command& c) { return c.kind == CommandKind::copy && index(c.link) > 1; })
                     ? 1
                     : 0;
    for (const NamedPlanner& planner : planners()) {
      CAPTURE(planner.name);
      const Result<Plan> plan = make_plan(planner.name, tiny.trace, tiny.machine);
      if (!plan) continue;
      CHECK(exact->iteration <= plan->predicted.iteration);
      if (exact->iteration == plan->predicted.iteration) ++optimal[std::string(planner.name)];
    }
  }
  MESSAGE(compared, " compared, ", simulated, " plans simulated; the near memory is used in ", near_used);
  MESSAGE("bound: above the computation in ", bound_above_compute, ", and ", of_optimum / compared, " of the optimum");
  for (const auto& [name, count] : optimal) MESSAGE(name, ": optimal in ", count);
  CHECK(compared > static_cast<int>(seeds.count) / 3);
  if (seeds.count < 130) return;
  CHECK(of_optimum / compared > 0.6);
  CHECK(near_used > compared / 4);
  CHECK(optimal["best"] > compared / 4);
}

TEST_CASE("v2: lower bound <= the fastest plan that is found, if links share capacities") {
  const Seeds seeds = test::seeds(effort(200, 10));
  int compared = 0;
  for (std::uint64_t seed = seeds.first; seed < seeds.first + seeds.count; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    Tiny tiny = random_tiny(random, true);
    tiny.machine.capacities = {{"root", byte_per_ns / (1 + one_of(random, 20))}};
    for (Link& link : tiny.machine.links) {
      if (chance(random, 0.6)) link.capacities = {CapacityId{0}};
    }
    const auto exact = fastest_plan(tiny.trace, tiny.machine, most_plans);
    if (!exact) continue;
    ++compared;
    CHECK(v2::lower_bound(tiny.trace, tiny.machine).value() <= exact->iteration);
  }
  CHECK(compared > static_cast<int>(seeds.count) / 3);
}

}  // namespace swapmm::v2::exact_property_test
