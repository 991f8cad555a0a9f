// SPDX-License-Identifier: Apache-2.0
#pragma once

// The random programs of tests/property on a real device. What happens when is the device's choice, so that the same
// seed may pass once and fail the next time; all that must hold holds each time.

#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <iostream>
#include <sstream>
#include <string>

#include "support/program/oracle.hpp"
#include "support/program/run.hpp"
#include "support/program/scale.hpp"
#include "support/random_program.hpp"
#include "support/seeds.hpp"

namespace swapmm::test {

/// Each of them holds on a device of that alignment, on demand and by plan, and with plans that were saved or changed.
template <ProgramDevice D>
void run_random_programs(const Seeds& all, Bytes alignment) {
  const ProgramRunner run = [](const TestProgram& program, const RunSettings& settings) {
    return run_program_on<D>(program, settings);
  };
  RunResult sum;
  std::uint64_t ran = 0;
  std::uint64_t with_plans = 0;
  std::uint64_t with_lifted_limits = 0;
  const auto start = std::chrono::steady_clock::now();
  for (std::uint64_t seed = all.first; seed < all.first + all.count; ++seed) {
    const std::chrono::duration<double> used = std::chrono::steady_clock::now() - start;
    if (all.seconds != 0 && used.count() > all.seconds) break;
    if (all.seconds != 0) std::cout << "seed " << seed << ", after " << used.count() << " s\n";
    ++ran;
    const TestProgram drawn = random_program(seed, 30 + seed * 37 % 91);
    const TestProgram program = scaled_to(alignment, drawn);
    const Verdict verdict = judge(program, {.on_demand = seed % 7 == 0, .advised = seed % 8 == 3}, run);
    if (!verdict.failure.empty()) {
      std::ostringstream text;
      text << "seed " << seed << ": " << verdict.failure << "\nthe same program with SWAPMM_TEST_SEED=" << seed << ":\n"
           << program;
      FAIL(text.str());
    }
    if (limits_memory(drawn)) ++with_lifted_limits;
    if (verdict.run.iterations_followed != 0) ++with_plans;
    sum.operations += verdict.run.operations;
    sum.iterations_on_demand += verdict.run.iterations_on_demand;
    sum.iterations_followed += verdict.run.iterations_followed;
    sum.divergences += verdict.run.divergences;
    sum.swaps += verdict.run.swaps;
    sum.refused += verdict.run.refused;
  }
  MESSAGE(ran << " programs, " << with_lifted_limits << " of them without the limits of memory that they have on "
              << "the simulated device: " << sum.operations << " operations, " << sum.swaps << " swaps, "
              << sum.iterations_on_demand << " iterations on demand, " << sum.iterations_followed << " by plan, "
              << sum.divergences << " divergences, " << sum.refused << " calls refused as they must be");
  CHECK(ran > 0);
  if (ran < 50) return;
  // The programs are such that there was something to be seen.
  CHECK(with_plans > ran / 2);
  CHECK(with_lifted_limits < ran / 2);
  CHECK(sum.iterations_followed > sum.iterations_on_demand / 4);  // on a busy device plans are judged later
  CHECK(sum.divergences > ran / 4);
  CHECK(sum.refused > ran / 4);
  CHECK(sum.swaps > 50 * ran);
}

}  // namespace swapmm::test
