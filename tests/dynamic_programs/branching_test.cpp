// SPDX-License-Identifier: Apache-2.0
//
// Random programs that branch: every sequence gives the bits of the host's loops, and nobody sees DroppedValue.
// SWAPMM_TEST_SEED=n runs the program of that seed alone, SWAPMM_TEST_SEEDS=n so many of them.

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "dynamic_programs/branching_program.hpp"
#include "support/effort.hpp"
#include "support/seeds.hpp"

using namespace swapmm;
using namespace swapmm::test;

namespace {

constexpr std::uint64_t usual_seeds = fewer_if_slow(40, 10);

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
    const BranchingRun result = run(program, {.planner = seed % 4 == 0 ? "best" : "belady", .drops = drops});
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

TEST_CASE("many of the same programs do where observations decide: the tests above are about something") {
  if (!runs_many()) return;
  CHECK(run_all(true, DropRule::observed).dropped > seeds(usual_seeds).count / 20);
  CHECK(run_all(false, DropRule::observed).dropped > seeds(usual_seeds).count / 20);
}

// Not a test: for docs/measurements.md. --no-skip --test-case="*relative to on demand*"
TEST_CASE("the time of programs that branch, relative to on demand" * doctest::skip()) {
  for (const bool host_reads : {true, false}) {
    const Seeds all = seeds(usual_seeds);
    double with_plans = 0;
    double on_demand = 0;
    double worst = 0;
    std::uint64_t followed = 0;
    std::uint64_t iterations = 0;
    for (std::uint64_t seed = all.first; seed < all.first + all.count; ++seed) {
      BranchingProgram program = branching_program(seed, host_reads);
      program.device.order = simulated::Order::virtual_time;
      const BranchingRun planned = run(program, {.drops = host_reads ? DropRule::by_evidence : DropRule::proven});
      const auto time = static_cast<double>(planned.time.count());
      const auto without = static_cast<double>(run(program, {.observe = 0}).time.count());
      with_plans += time;
      on_demand += without;
      worst = std::max(worst, time / without);
      followed += planned.report.iterations_followed;
      iterations += program.iterations.size();
    }
    MESSAGE(std::string(host_reads ? "by evidence" : "proven")
            << ": all " << with_plans / on_demand << ", worst " << worst << ", iterations by a plan " << followed
            << " of " << iterations);
  }
}
