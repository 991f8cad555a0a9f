// SPDX-License-Identifier: Apache-2.0
//
// What can never fit is refused at once: random programs, on demand and by plan, with work under way, in which now and
// then an operation needs more than the budget. The runner of programs checks each one: the figures that the refusal
// names, and that nothing was queued and nobody waited; everything else must go on as if it had not been asked for.

#include <doctest/doctest.h>

#include <cstdint>
#include <string>

#include "support/effort.hpp"
#include "support/program/oracle.hpp"
#include "support/program/report.hpp"
#include "support/program/tally.hpp"
#include "support/random_program.hpp"
#include "support/seeds.hpp"
#include "support/too_large.hpp"

using namespace swapmm;
using namespace swapmm::test;

namespace {

const std::uint64_t usual_cases = test::effort(10'000, 20);

TestProgram program_with_too_large(std::uint64_t seed) {
  TestProgram program = random_program(seed, 20 + seed % 20);
  simulated::detail::Random random(seed ^ 0x7001'A26EU);
  add_too_large(program, random, 1 + seed % 3);
  return program;
}

}  // namespace

TEST_CASE("an operation that can never fit is refused with its figures before anything is queued or waited for") {
  const Seeds all = seeds(usual_cases);
  const std::uint64_t cases = all.count == usual_cases ? usual_cases : 0;  // else: so many programs
  ProgramTally tally;
  for (std::uint64_t seed = all.first; cases != 0 ? tally.too_large < cases : tally.programs < all.count; ++seed) {
    const TestProgram program = program_with_too_large(seed);
    const Verdict verdict = judge(program, {});
    if (!verdict.failure.empty()) {
      const auto again = [](const TestProgram& smaller) { return judge(smaller, {}); };
      FAIL("seed " << seed << ": " << verdict.failure << "\n" << report_failure(program, verdict.failure, again).text);
    }
    tally.add(program, {}, verdict);
  }
  if (cases == 0) return;
  CHECK(tally.too_large_inside > cases / 3);
  CHECK(tally.too_large - tally.too_large_inside > cases / 10);
  CHECK(tally.too_large_followed > cases / 20);
  CHECK(tally.too_large_in_flight > cases / 4);
  MESSAGE(tally.too_large << " of them in " << tally.programs << " programs: " << tally.too_large_inside
                          << " in iterations, " << tally.too_large_followed << " of those in followed ones, "
                          << tally.too_large_in_flight << " with other work under way");
}
