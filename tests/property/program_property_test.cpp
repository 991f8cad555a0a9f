// SPDX-License-Identifier: Apache-2.0
//
// Random programs on the simulated device: what docs/reliability.md promises holds for each of them.
// SWAPMM_TEST_SEED=n runs the program of that seed alone, SWAPMM_TEST_SEEDS=n so many of them.

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string>

#include <swapmm/plan/planners.hpp>

#include "support/effort.hpp"
#include "support/program/report.hpp"
#include "support/program/scale.hpp"
#include "support/program/seeds.hpp"
#include "support/program/tally.hpp"
#include "support/seeds.hpp"

using namespace swapmm;

namespace {

const std::uint64_t usual_seeds = test::effort(3'000, 20);

/// Everything needed to understand the failure.
std::string report_of(std::uint64_t seed, const std::string& failure) {
  const auto judge = [&](const test::TestProgram& program) { return test::judge(program, test::scrutiny_of(seed)); };
  std::ostringstream out;
  out << "seed " << seed << ": " << failure << "\nthe same, and as C++, with ./dev simulate --seed " << seed
      << " --seeds 1; " << test::report_failure(test::program_of(seed), failure, judge).text;
  return out.str();
}

}  // namespace

TEST_CASE("random programs with host views of several blocks") {
  const std::uint64_t usual_programs = test::effort(60, 20);
  test::ProgramTally tally;
  for (std::uint64_t seed = 1; tally.programs < usual_programs; ++seed) {
    const test::TestProgram drawn = test::program_of(seed);
    if (!test::has_host_views(drawn)) continue;
    const test::TestProgram program = test::scaled_to(Bytes{drawn.device.alignment.value * 128}, drawn);
    const test::Verdict verdict = test::judge(program, {});
    if (!verdict.failure.empty()) {
      std::ostringstream text;
      text << "seed " << seed << ", 128 times as large: " << verdict.failure << "\n" << program;
      FAIL(text.str());
    }
    tally.add(program, {}, verdict);
  }
  CHECK(tally.view_faults > 3 * tally.programs);
  CHECK(tally.view_bytes_in > tally.programs << 16U);
  CHECK(tally.view_bytes_out > tally.programs << 16U);
}

TEST_CASE("random programs read what they wrote, within all budgets, on demand and by plan") {
  const test::Seeds all = test::seeds(usual_seeds);
  test::ProgramTally tally;
  for (std::uint64_t seed = all.first; seed < all.first + all.count; ++seed) {
    const test::TestProgram program = test::program_of(seed);
    const test::Scrutiny scrutiny = test::scrutiny_of(seed);
    const test::Verdict verdict = test::judge(program, scrutiny);
    if (!verdict.failure.empty()) FAIL(report_of(seed, verdict.failure));
    tally.add(program, scrutiny, verdict);
  }
  if (all.count < 1000) return;
  // The programs are such that there was something to be seen.
  CHECK(tally.with_plans > 9 * all.count / 20);
  CHECK(tally.that_drop < all.count / 3);
  CHECK(tally.iterations_followed > tally.iterations_on_demand / 4);
  CHECK(tally.divergences > all.count / 4);
  CHECK(tally.refused > all.count / 2);
  CHECK(tally.outlived_refused > all.count / 10);
  CHECK(tally.too_large > all.count / 20);
  CHECK(tally.swaps > 50 * all.count);
  CHECK(tally.budget_changes > all.count / 4);
  CHECK(tally.with_files > (all.count - tally.with_company) / 11);  // on several devices few have files
  CHECK(tally.that_tell_files > all.count / 100);
  if (all.count >= 10'000) CHECK(tally.that_replay > 0);  // replay_property_test.cpp has programs that do
  CHECK(tally.with_neighbours > all.count / 20);
  CHECK(tally.that_tell_neighbours > all.count / 50);
  CHECK(tally.with_host_views > all.count / 10);
  CHECK(tally.that_follow_beside_views > all.count / 25);
  CHECK(tally.view_faults > all.count / 4);
  CHECK(tally.view_bytes_in > 50 * all.count);
  CHECK(tally.view_bytes_out > 50 * all.count);
  CHECK(tally.outlived_looks > all.count / 30);
  CHECK(tally.with_company > all.count / 20);
  CHECK(tally.that_share_plans > all.count / 50);
  CHECK(tally.turns_taken > all.count / 10);
  CHECK(tally.sampled_rounds > all.count / 8);
  CHECK(tally.plans_remade > all.count / 50);
  CHECK(tally.plans_mutated > all.count / 16);
  CHECK(tally.mutated_refused < tally.plans_mutated);
  for (std::size_t planner = 0; planner < planners().size(); ++planner) {
    CHECK_MESSAGE(tally.planners[planner] > all.count / 200, planners()[planner].name);
  }
  std::ostringstream text;
  text << tally;
  MESSAGE(text.str());
}
