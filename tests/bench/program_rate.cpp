// SPDX-License-Identifier: Apache-2.0
//
// How many random programs run per second on one core, drawing, device, checker and oracle included.
//   program_rate [programs] [operations per program]

#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <iostream>

#include "support/program/runner.hpp"
#include "support/random_program.hpp"

using namespace swapmm;

int main(int argc, char** argv) {
  const std::uint64_t programs = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 20'000;
  const std::size_t operations = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 30;
  test::RunResult sum;
  const std::clock_t start = std::clock();
  for (std::uint64_t seed = 1; seed <= programs; ++seed) {
    const test::RunResult run = test::run_program(test::random_program(seed, operations));
    if (!run.failure.empty()) {
      std::cerr << "seed " << seed << ": " << run.failure << "\n";
      return EXIT_FAILURE;
    }
    sum.operations += run.operations;
    sum.swaps += run.swaps;
    sum.iterations_on_demand += run.iterations_on_demand;
    sum.iterations_followed += run.iterations_followed;
  }
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;  // of this process alone
  std::cout << programs << " programs of " << operations << " operations in " << seconds
            << " s: " << static_cast<double>(programs) / seconds << " per second\n"
            << sum.operations << " operations, " << sum.swaps << " swaps, " << sum.iterations_on_demand
            << " iterations on demand, " << sum.iterations_followed << " followed\n";
}
