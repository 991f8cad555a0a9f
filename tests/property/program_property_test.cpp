// SPDX-License-Identifier: Apache-2.0
//
// Random programs on the simulated device: what docs/reliability.md promises holds for each of them.
// SWAPMM_TEST_SEED=n runs the program of that seed alone, SWAPMM_TEST_SEEDS=n so many of them.

#include <doctest/doctest.h>

#include <cstdint>
#include <sstream>
#include <string>

#include "support/program_oracle.hpp"
#include "support/program_shrink.hpp"
#include "support/random_program.hpp"
#include "support/seeds.hpp"

using namespace swapmm;

namespace {

#ifdef SWAPMM_TEST_IS_SLOW
constexpr std::uint64_t usual_seeds = 1'500;  // each takes many times as long
#else
constexpr std::uint64_t usual_seeds = 10'000;
#endif

test::TestProgram program_of(std::uint64_t seed) { return test::random_program(seed, 30 + seed * 37 % 91); }

test::Scrutiny scrutiny_of(std::uint64_t seed) {
  return {.again = seed % 50 == 0, .on_demand = seed % 7 == 0, .advised = seed % 8 == 3};
}

/// Everything needed to understand the failure.
std::string report_of(std::uint64_t seed, const std::string& failure) {
  const test::Scrutiny scrutiny = scrutiny_of(seed);
  const test::TestProgram smaller = test::shrink(program_of(seed), [&](const test::TestProgram& program) {
    return !test::judge(program, scrutiny).failure.empty();
  });
  std::ostringstream out;
  out << "seed " << seed << ": " << failure << "\nthe same with SWAPMM_TEST_SEED=" << seed
      << "; what is left of it after shrinking:\n"
      << smaller << "fails with: " << test::judge(smaller, scrutiny).failure;
  return out.str();
}

}  // namespace

TEST_CASE("random programs read what they wrote, within all budgets, on demand and by plan") {
  const test::Seeds all = test::seeds(usual_seeds);
  test::RunResult sum;
  std::uint64_t programs_with_plans = 0;
  std::uint64_t programs_that_drop = 0;
  for (std::uint64_t seed = all.first; seed < all.first + all.count; ++seed) {
    const test::Verdict verdict = test::judge(program_of(seed), scrutiny_of(seed));
    if (!verdict.failure.empty()) FAIL(report_of(seed, verdict.failure));
    sum.iterations_on_demand += verdict.run.iterations_on_demand;
    sum.iterations_followed += verdict.run.iterations_followed;
    sum.divergences += verdict.run.divergences;
    sum.refused += verdict.run.refused;
    sum.swaps += verdict.run.swaps;
    sum.budget_changes += verdict.run.budget_changes;
    sum.sampled_rounds += verdict.run.sampled_rounds;
    sum.plans_remade += verdict.run.plans_remade;
    if (verdict.run.iterations_followed != 0) ++programs_with_plans;
    if (verdict.run.dropped != 0) ++programs_that_drop;
  }
  if (all.count < 1000) return;
  // The programs are such that there was something to be seen.
  CHECK(programs_with_plans > all.count / 2);
  CHECK(programs_that_drop < all.count / 8);
  CHECK(sum.iterations_followed > sum.iterations_on_demand / 3);
  CHECK(sum.divergences > all.count / 4);
  CHECK(sum.refused > all.count / 2);
  CHECK(sum.swaps > 50 * all.count);
  CHECK(sum.budget_changes > all.count / 4);
  CHECK(sum.sampled_rounds > all.count / 8);
  CHECK(sum.plans_remade > all.count / 50);
  MESSAGE(sum.budget_changes << " other budgets, " << sum.sampled_rounds << " rounds sampled, " << sum.plans_remade
                             << " plans made anew");
}
