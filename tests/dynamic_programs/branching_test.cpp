// SPDX-License-Identifier: Apache-2.0
//
// Random programs that branch: every sequence gives the bits of the host's loops, and nobody sees DroppedValue.
// SWAPMM_TEST_SEED=n runs the program of that seed alone, SWAPMM_TEST_SEEDS=n so many of them.

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>

#include "dynamic_programs/branching_program.hpp"
#include "support/effort.hpp"
#include "support/seeds.hpp"

using namespace swapmm;
using namespace swapmm::test;

namespace {

const std::uint64_t usual_seeds = effort(120, 30);

struct Tally {
  std::uint64_t followed = 0;  // iterations
  std::uint64_t divergences = 0;
  std::uint64_t saved = 0;
  std::uint64_t dropped = 0;  // programs that DroppedValue ended
};

/// Runs the program of each seed. Values that it gets to the end with are right in any case.
Tally run_all(bool host_reads, DropRule drops) {
  const Seeds all = seeds(usual_seeds);
  Tally tally;
  for (std::uint64_t seed = all.first; seed < all.first + all.count; ++seed) {
    CAPTURE(seed);
    const BranchingProgram program = branching_program(seed, host_reads);
    // Without trials plans are followed whenever an iteration begins like them, and left in the middle.
    const BranchingRun result = run(program, {.planner = seed % 4 == 0 ? "best" : "belady",
                                              .trial_iterations = seed % 3 == 0 ? std::size_t{4} : std::size_t{0},
                                              .drops = drops});
    if (result.dropped.empty()) CHECK(result.values == values_by_loops(program));
    for (const std::string& violation : result.violations) FAIL_CHECK(violation);
    tally.followed += result.report.iterations_followed;
    tally.divergences += result.report.divergences;
    tally.saved += result.report.values_saved;
    tally.dropped += result.dropped.empty() ? 0 : 1;
  }
  return tally;
}

/// Whether there are so many programs that there must have been something to see.
bool runs_many() { return seeds(usual_seeds).count >= 40; }

}  // namespace

TEST_CASE("programs whose host reads values between operations never see a dropped value, with the default options") {
  const Tally tally = run_all(true, DropRule::by_evidence);
  CHECK(tally.dropped == 0);
  if (!runs_many()) return;
  CHECK(tally.followed > 2 * seeds(usual_seeds).count);
  CHECK(tally.divergences > seeds(usual_seeds).count);
}

TEST_CASE("programs that branch by what the host knows never see a dropped value where drops are to be proven") {
  const Tally tally = run_all(false, DropRule::proven);
  CHECK(tally.dropped == 0);
  if (!runs_many()) return;
  CHECK(tally.followed > 2 * seeds(usual_seeds).count);
  CHECK(tally.divergences > seeds(usual_seeds).count);
}

TEST_CASE("large programs that branch, on demand: what is foretold comes, copies are fewer, and all values are right") {
  constexpr std::uint64_t count = is_slow ? 1 : 5;
  std::uint64_t foreseen = 0;
  std::uint64_t recent = 0;
  for (std::uint64_t seed = 1; seed <= count; ++seed) {
    for (const bool host_reads : {false, true}) {
      CAPTURE(seed);
      BranchingProgram program = branching_program(seed, host_reads, BranchingSize::large);
      program.device.order = simulated::Order::virtual_time;
      const BranchingRun result = run(program, {.observe = 0});
      CHECK(result.values == values_by_loops(program));
      for (const std::string& violation : result.violations) FAIL_CHECK(violation);
      CHECK(10 * result.report.predictions_right > 9 * result.report.predictions);
      CHECK(2 * result.report.predictions > result.report.operations);
      program.manager.demand_mode = DemandMode::least_recently_used;
      const BranchingRun without = run(program, {.observe = 0});
      foreseen += result.report.swap_ins + result.report.swap_outs;
      recent += without.report.swap_ins + without.report.swap_outs;
      CHECK(1000 * result.time <= 1001 * without.time);  // copies stay hidden behind operations
    }
  }
  CHECK(10 * foreseen < 9 * recent);
}

TEST_CASE(
    "plans of programs that branch all the time cost less than a hundredth of the time on demand in the long run") {
  constexpr std::uint64_t count = is_slow ? 1 : 4;
  // Programs that say so, and some that only show it, whose plans start; also where copies take as long as operations.
  struct Kind {
    bool host_reads;
    bool slow_copies;
  };
  std::uint64_t starts = 0;
  for (const auto [host_reads, slow_copies] :
       {Kind{false, false}, Kind{false, true}, Kind{true, false}, Kind{true, true}}) {
    for (std::uint64_t seed = 1; seed <= count; ++seed) {
      CAPTURE(seed);
      BranchingProgram program = branching_program(seed, host_reads, BranchingSize::small, 400);
      program.device.order = simulated::Order::virtual_time;
      if (slow_copies) program.device.h2d.bytes_per_second = program.device.d2h.bytes_per_second = 64'000'000;
      const BranchingRun planned = run(program, {.drops = host_reads ? DropRule::by_evidence : DropRule::proven});
      CHECK(planned.values == values_by_loops(program));
      if (!host_reads) CHECK(planned.report.plan_starts == 0);
      CHECK(planned.report.plan_starts < 10);
      starts += planned.report.plan_starts;
      program.manager.demand_mode = DemandMode::least_recently_used;
      const BranchingRun base = run(program, {.observe = 0});
      CHECK(1000 * planned.time <= (slow_copies ? 1010 : 1001) * base.time);
    }
  }
  if (!is_slow) CHECK(starts > 0);
}

TEST_CASE("short programs that branch lose little of their time: each of them, and all if their copies are slow") {
  for (const bool host_reads : {false, true}) {
    std::chrono::nanoseconds slow_ones{0};
    std::chrono::nanoseconds slow_on_demand{0};
    for (std::uint64_t seed = 1; seed <= usual_seeds; ++seed) {
      CAPTURE(seed);
      const SchedulerOptions options{.drops = host_reads ? DropRule::by_evidence : DropRule::proven};
      BranchingProgram program = branching_program(seed, host_reads);
      program.device.order = simulated::Order::virtual_time;
      BranchingProgram on_demand = program;
      on_demand.manager.demand_mode = DemandMode::least_recently_used;
      CHECK(1000 * run(program, options).time <= 1010 * run(on_demand, {.observe = 0}).time);
      for (BranchingProgram* each : {&program, &on_demand}) {
        each->device.h2d.bytes_per_second = each->device.d2h.bytes_per_second = 64'000'000;
      }
      slow_ones += run(program, options).time;
      slow_on_demand += run(on_demand, {.observe = 0}).time;
    }
    CHECK(1000 * slow_ones <= 1005 * slow_on_demand);
  }
}

TEST_CASE("many of the same programs do where observations decide: the tests above are about something") {
  if (!runs_many()) return;
  CHECK(run_all(true, DropRule::observed).dropped > seeds(usual_seeds).count / 20);
  CHECK(run_all(false, DropRule::observed).dropped > seeds(usual_seeds).count / 20);
}

namespace {

struct Relative {
  double time = 0;
  double base = 0;
  double worst = 0;
  std::uint64_t in = 0;
  std::uint64_t out = 0;
  std::uint64_t followed = 0;

  void add(const BranchingRun& run, const BranchingRun& to) {
    time += static_cast<double>(run.time.count());
    base += static_cast<double>(to.time.count());
    worst = std::max(worst, static_cast<double>(run.time.count()) / static_cast<double>(to.time.count()));
    in += run.report.swap_ins;
    out += run.report.swap_outs;
    followed += run.report.iterations_followed;
  }
  [[nodiscard]] std::string text() const {
    return "time " + std::to_string(time / base) + ", worst " + std::to_string(worst) + ", in " + std::to_string(in) +
           ", out " + std::to_string(out) + ", iterations by a plan " + std::to_string(followed);
  }
};

void compare(BranchingSize size, bool host_reads, std::uint64_t bytes_per_second, std::size_t iterations) {
  const Seeds all = seeds(usual_seeds);
  Relative recent;
  Relative foreseen;
  Relative planned;
  for (std::uint64_t seed = all.first; seed < all.first + all.count; ++seed) {
    BranchingProgram program = branching_program(seed, host_reads, size, iterations);
    program.device.order = simulated::Order::virtual_time;
    if (bytes_per_second != 0) {
      program.device.h2d.bytes_per_second = program.device.d2h.bytes_per_second = bytes_per_second;
    }
    const BranchingRun on_demand = run(program, {.observe = 0});
    const BranchingRun with_plans = run(program, {.drops = host_reads ? DropRule::by_evidence : DropRule::proven});
    program.manager.demand_mode = DemandMode::least_recently_used;
    const BranchingRun base = run(program, {.observe = 0});
    recent.add(base, base);
    foreseen.add(on_demand, base);
    planned.add(with_plans, base);
  }
  MESSAGE(std::string(size == BranchingSize::large ? "large" : "small")
          << std::string(host_reads ? ", reads" : "") << ", " << bytes_per_second << " B/s (0: default), " << iterations
          << " iterations (0: usual)\n  least recently used " << recent.text() << "\n  foreseen " << foreseen.text()
          << "\n  default options " << planned.text());
}

}  // namespace

// Not a test: for docs/measurements.md. --no-skip --test-case="*relative to the least recently used*". Operations take
// a microsecond; copies 64 bytes.
TEST_CASE("the time of programs that branch, relative to the least recently used" * doctest::skip()) {
  for (const BranchingSize size : {BranchingSize::small, BranchingSize::large}) {
    for (const bool host_reads : {true, false}) {
      for (const std::uint64_t speed : {0U, 64'000'000U, 20'000'000U}) {
        for (const std::size_t iterations : {0U, 400U}) compare(size, host_reads, speed, iterations);
      }
    }
  }
}
