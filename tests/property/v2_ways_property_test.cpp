// SPDX-License-Identifier: Apache-2.0
//
// Values come back by copies from several memories, and in other ways.

#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <swapmm/plan/v2/bound.hpp>
#include <swapmm/plan/v2/planners.hpp>
#include <swapmm/plan/v2/simulate.hpp>
#include <swapmm/plan/v2/validate.hpp>
#include <swapmm/plan/ways/program/history.hpp>

#include "support/effort.hpp"
#include "support/random_trace.hpp"
#include "support/seeds.hpp"
#include "support/v2/execution.hpp"
#include "support/v2/store_case.hpp"

namespace swapmm::test::v2_ways_property_test {

/// Operations that may run again, forms, and operations in pieces.
void add_ways(Trace& trace, std::mt19937_64& random) {
  const bool in_pieces = one_of(random, 3) == 0;
  const double replayable = one_of(random, 4) == 0 ? 0.0 : 0.7;
  for (TraceOperation& operation : trace.operations) {
    operation.replayable = chance(random, replayable);
    operation.in_pieces = in_pieces && chance(random, 0.9);
    operation.duration /= 10;  // copies take long
  }
  for (std::uint32_t t = 0; t < trace.tensors.size(); ++t) {
    if (!chance(random, 0.3)) continue;
    const Bytes bytes{1 + one_of(random, trace.tensors[t].bytes.value)};
    trace.forms.push_back({static_cast<TensorId>(t), "zeros", bytes, Bytes{one_of(random, bytes.value + 1)},
                           std::chrono::nanoseconds{one_of(random, 30)}, std::chrono::nanoseconds{one_of(random, 30)}});
  }
}

struct Uses {
  int replays = 0;
  int codings = 0;
  int divided = 0;
};

void count(const v2::Plan& plan, Uses& uses) {
  bool runs = false;
  bool encodes = false;
  for (const v2::Command& command : plan.commands) {
    runs = runs || command.kind == v2::CommandKind::run;
    encodes = encodes || command.kind == v2::CommandKind::encode;
  }
  uses.replays += runs ? 1 : 0;
  uses.codings += encodes ? 1 : 0;
  uses.divided += plan.pieces.empty() ? 0 : 1;
}

TEST_CASE("v2: with ways on machines with many memories, best is right, above its bound, and no slower than copies") {
  const Seeds all = seeds(effort(600, 24));
  Uses uses;
  int faster = 0;
  for (std::uint64_t seed = all.first; seed < all.first + all.count; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    general::StoreCase one = seed % 3 == 0 ? general::far_store_case(random, 10) : general::store_case(random, 12);
    add_ways(one.trace, random);
    REQUIRE(check_trace(one.trace));
    const Result<v2::Plan> made = v2::make_plan("best", one.trace, one.machine);
    PlanningOptions only_copies;
    only_copies.ways = {.recompute = false, .compress = false, .pieces = false};
    const Result<v2::Plan> copies = v2::make_plan("best", one.trace, one.machine, only_copies);
    if (!made) {
      CHECK(!copies);
      continue;
    }
    const auto violations = v2::validate(one.trace, *made);
    REQUIRE_MESSAGE(violations.empty(), violations.front().message);
    CHECK(v2::simulate(one.trace, *made).iteration == made->predicted.iteration);
    CHECK(made->predicted.lower_bound <= made->predicted.iteration);
    CHECK(v2::lower_bound(one.trace, one.machine).value() <= made->predicted.iteration);
    if (copies) {
      CHECK(made->predicted.iteration <= copies->predicted.iteration);
      CHECK(made->predicted.lower_bound <= copies->predicted.iteration);
      faster += made->predicted.iteration < copies->predicted.iteration ? 1 : 0;
    }
    const std::vector<std::string> faults = general::execute(random, one.trace, *made, 4);
    REQUIRE_MESSAGE(faults.empty(), faults.front());
    count(*made, uses);
  }
  MESSAGE(all.count, " cases: ", uses.replays, " with replays, ", uses.codings, " with codings, ", uses.divided,
          " divided, ", faster, " faster than copies alone");
  if (all.count >= 20) CHECK(uses.replays + uses.codings + uses.divided > 2);
  if (all.count >= 20) CHECK(faster > 2);
}

/// Layers forward and backward: what the forward pass makes is needed once more, in reverse order.
Trace layers(std::uint32_t count, bool replayable) {
  Trace trace;
  trace.name = "layers";
  trace.tensors.push_back({"input", Bytes{100}, TensorKind::persistent, 0});
  for (std::uint32_t i = 0; i < count; ++i) {
    trace.tensors.push_back({"a" + std::to_string(i), Bytes{100}, TensorKind::transient, 0});
    TraceOperation operation{"forward", std::chrono::nanoseconds{10}, {TensorId{i}}, {TensorId{i + 1}}, {}};
    operation.replayable = replayable;
    trace.operations.push_back(operation);
  }
  for (std::uint32_t i = count; i > 0; --i) {
    trace.operations.push_back({"backward", std::chrono::nanoseconds{20}, {TensorId{i}}, {}, {}});
  }
  return trace;
}

TEST_CASE("v2: what is cheap to compute is computed again on a machine with a host and a disk") {
  const Trace trace = layers(12, true);
  v2::Machine machine;
  machine.memories = {{"gpu", Bytes{400}, Bytes{1}, std::nullopt},
                      {"host", Bytes{300}, Bytes{1}, std::nullopt},
                      {"disk", Bytes{10'000}, Bytes{1}, std::nullopt}};
  machine.engines = {{"compute", v2::MemoryId{0}}};
  machine.host = v2::MemoryId{1};
  const auto link = [&](const char* name, std::uint32_t from, std::uint32_t to, std::uint64_t rate) {
    machine.links.push_back(
        {name, v2::MemoryId{from}, v2::MemoryId{to}, rate, std::chrono::nanoseconds{0}, std::nullopt, {}});
  };
  link("to.host", 0, 1, 1'000'000'000);
  link("from.host", 1, 0, 1'000'000'000);
  for (const bool far : {false, true}) {
    CAPTURE(far);
    machine.links.resize(2);
    link("to.disk", far ? 1 : 0, 2, 500'000'000);
    link("from.disk", 2, far ? 1 : 0, 500'000'000);
    const Result<v2::Plan> made = v2::make_plan("best", trace, machine);
    const Result<v2::Plan> copies = v2::make_plan("best", layers(12, false), machine);
    REQUIRE(made);
    REQUIRE(copies);
    CHECK(v2::validate(trace, *made).empty());
    Uses uses;
    count(*made, uses);
    CHECK(uses.replays == 1);
    CHECK(2 * made->predicted.iteration < copies->predicted.iteration);
    CHECK(made->predicted.lower_bound <= made->predicted.iteration);
    PlanningOptions none;
    none.ways.recompute = false;
    const Result<v2::Plan> without = v2::make_plan("best", trace, machine, none);
    REQUIRE(without);
    CHECK(without->predicted.iteration == copies->predicted.iteration);
    CHECK(without->predicted.lower_bound <= made->predicted.iteration);
    PlanningOptions no_time;
    no_time.go_on = [](const PlanningProgress&) { return false; };
    const Result<v2::Plan> hurried = v2::make_plan("best", trace, machine, no_time);
    REQUIRE(hurried);
    CHECK(v2::validate(trace, *hurried).empty());
  }
}

}  // namespace swapmm::test::v2_ways_property_test
