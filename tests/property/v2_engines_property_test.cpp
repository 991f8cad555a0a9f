// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <swapmm/ir/liveness.hpp>
#include <swapmm/plan/v2/bound.hpp>
#include <swapmm/plan/v2/planners.hpp>
#include <swapmm/plan/v2/simulate.hpp>
#include <swapmm/plan/v2/spread/spread_shared.hpp>
#include <swapmm/plan/v2/validate.hpp>

#include "support/effort.hpp"
#include "support/random_trace.hpp"
#include "support/seeds.hpp"
#include "support/v2/random_case.hpp"

namespace swapmm::test::v2_engines_property_test {

using std::chrono::nanoseconds;

/// Checks a plan by rules, prediction and bound.
void check_right(const Trace& trace, const v2::Plan& plan) {
  const auto violations = v2::validate(trace, plan);
  CHECK_MESSAGE(violations.empty(), violations.front().message);
  const nanoseconds time = v2::simulate(trace, plan).iteration;
  CHECK(plan.predicted.iteration == time);
  const Result<nanoseconds> bound = v2::lower_bound(trace, plan.machine);
  REQUIRE(bound);
  CHECK(*bound <= time);
}

TEST_CASE("v2: planners for one device plan for engines that share memories and tensors") {
  const Seeds seeds = test::seeds(effort(6000, 10));
  // What cannot be planned for in this way.
  constexpr std::array reasons{"all operations run in the host", "the host gives an input at the end of the iteration",
                               "the host reads a value of the iteration before", "the host reads an input that"};
  constexpr std::array planners{"belady", "on-demand", "slack", "excess"};
  int planned = 0;
  int refused = 0;
  for (std::uint64_t seed = seeds.first; seed < seeds.first + seeds.count; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    RandomTraceOptions options;
    options.operations = 2 + one_of(random, 14);
    options.tensors = 2 + one_of(random, 8);
    options.host_reads = chance(random, 0.3) ? 0.2 : 0.0;
    Trace trace = random_trace(random, options);
    Bytes bundle = analyze_liveness(trace, Bytes{8}).largest_bundle;
    if (chance(random, 0.5)) bundle += Bytes{100};
    const v2::Machine machine = general::random_machine(random, bundle);
    general::enrich(random, machine, trace);
    if (trace.engines.empty()) continue;
    const char* const planner = planners[one_of(random, planners.size())];
    CAPTURE(planner);
    const Result<v2::Plan> plan = v2::planning::spread_shared(planner, trace, machine, {});
    if (plan) {
      check_right(trace, *plan);
      ++planned;
      continue;
    }
    const std::string& why = plan.problem().message;
    CHECK_MESSAGE(std::ranges::any_of(reasons, [&](const char* text) { return why.find(text) != std::string::npos; }),
                  why);
    ++refused;
  }
  if (seeds.count >= 100) CHECK(planned > 5 * refused);
}

/// Layers, forward and backward, on each of some engines, whose values can be computed again or encoded. Some values
/// are read by the next engine, too.
Trace chains(std::mt19937_64& random, const std::vector<std::string>& engines) {
  Trace trace;
  trace.name = "chains";
  trace.engines = engines;
  const auto add = [&](TensorKind kind) {
    trace.tensors.push_back({"t", Bytes{50 + one_of(random, 100)}, kind, 0});
    return id_at<TensorId>(trace.tensors.size() - 1);
  };
  const auto run = [&](std::size_t engine, std::vector<TensorId> reads, std::vector<TensorId> writes, bool again) {
    const auto time = nanoseconds{20 + static_cast<std::int64_t>(one_of(random, 100))};
    TraceOperation operation{"op", time, std::move(reads), std::move(writes), {}};
    operation.engine = static_cast<std::uint32_t>(engine);
    operation.replayable = again;
    trace.operations.push_back(std::move(operation));
  };
  const std::size_t layers = 4 + one_of(random, 5);
  std::vector<std::vector<TensorId>> values(engines.size());
  const std::vector<TensorId> begins = [&] {
    std::vector<TensorId> list;
    for (std::size_t e = 0; e < engines.size(); ++e) list.push_back(add(TensorKind::persistent));
    return list;
  }();
  for (std::size_t l = 0; l < layers; ++l) {
    for (std::size_t e = 0; e < engines.size(); ++e) {
      const TensorId before = l == 0 ? begins[e] : values[e][l - 1];
      std::vector<TensorId> reads{before};
      if (l > 0 && chance(random, 0.1)) {
        const TensorId other = values[(e + 1) % engines.size()][l - 1];
        if (other != before) reads.push_back(other);
      }
      values[e].push_back(add(TensorKind::transient));
      run(e, reads, {values[e][l]}, chance(random, 0.9));
    }
  }
  for (std::size_t l = layers; l-- > 0;) {
    for (std::size_t e = 0; e < engines.size(); ++e) run(e, {values[e][l]}, {}, false);
  }
  const bool has_forms = chance(random, 0.5);
  for (std::size_t t = 0; t < trace.tensors.size() && has_forms; ++t) {
    const Bytes bytes{trace.tensors[t].bytes.value / 4 + 1};
    trace.forms.push_back({id_at<TensorId>(t), "small", bytes, bytes, nanoseconds{5}, nanoseconds{5}});
  }
  return trace;
}

TEST_CASE("v2: engines that share memories and tensors compute again and encode, by right plans") {
  const Seeds seeds = test::seeds(effort(48, 10));
  int replays = 0;
  int encodings = 0;
  int faster = 0;
  for (std::uint64_t seed = seeds.first; seed < seeds.first + seeds.count; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    v2::Machine machine;
    machine.name = "random";
    const std::uint32_t memories = 1 + static_cast<std::uint32_t>(one_of(random, 2));
    for (std::uint32_t m = 0; m < memories; ++m) {
      machine.memories.push_back({"gpu" + std::to_string(m), Bytes{700}, Bytes{1}, std::nullopt});
    }
    machine.host = v2::MemoryId{memories};
    machine.memories.push_back({"host", chance(random, 0.5) ? std::optional{Bytes{2500}} : std::nullopt, Bytes{1}, {}});
    std::vector<std::string> engines{"e0", "e1"};
    for (std::uint32_t e = 0; e < 2; ++e) machine.engines.push_back({engines[e], v2::MemoryId{e % memories}});
    if (chance(random, 0.3)) {
      engines.emplace_back("cpu");
      machine.engines.push_back({"cpu", machine.host});
    }
    const auto link = [&](v2::MemoryId from, v2::MemoryId to, std::uint64_t rate) {
      machine.links.push_back({"l" + std::to_string(machine.links.size()), from, to, rate, nanoseconds{0}, {}, {}});
    };
    const std::uint64_t rate = 1'000'000'000 / (1 + one_of(random, 12));
    for (std::uint32_t m = 0; m < memories; ++m) {
      link(machine.host, v2::MemoryId{m}, rate);
      link(v2::MemoryId{m}, machine.host, rate);
    }
    if (memories == 2 && chance(random, 0.5)) {
      link(v2::MemoryId{0}, v2::MemoryId{1}, 4 * rate);
      link(v2::MemoryId{1}, v2::MemoryId{0}, 4 * rate);
    }
    const Trace trace = chains(random, engines);
    REQUIRE(check_trace(trace));
    const auto limited = [](Ways ways) {
      PlanningOptions options;
      options.ways = ways;
      options.go_on = [asked = 0](const PlanningProgress& progress) mutable { return ++asked < 200 * progress.part; };
      return options;
    };
    const Result<v2::Plan> all = v2::make_plan("best", trace, machine, limited({}));
    const Result<v2::Plan> copies =
        v2::make_plan("best", trace, machine, limited({.recompute = false, .compress = false, .pieces = false}));
    if (!copies) continue;  // the host is too small
    REQUIRE_MESSAGE(all, all.problem().message);
    check_right(trace, *all);
    check_right(trace, *copies);
    faster += all->predicted.iteration < copies->predicted.iteration ? 1 : 0;
    for (const v2::Command& command : all->commands) {
      replays += command.kind == v2::CommandKind::run ? 1 : 0;
      encodings += command.kind == v2::CommandKind::encode ? 1 : 0;
    }
  }
  if (seeds.count >= 8) {
    CHECK(faster >= 3);
    CHECK(replays > 0);
    CHECK(encodings > 0);
  }
}

}  // namespace swapmm::test::v2_engines_property_test
