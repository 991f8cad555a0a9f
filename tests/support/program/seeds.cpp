// SPDX-License-Identifier: Apache-2.0
#include "support/program/seeds.hpp"

#include "support/random_program.hpp"

namespace swapmm::test {

TestProgram program_of(std::uint64_t seed) { return random_program(seed, 30 + seed * 37 % 91); }

Scrutiny scrutiny_of(std::uint64_t seed) {
  return {.again = seed % 50 == 0, .on_demand = seed % 7 == 0, .advised = seed % 8 == 3};
}

Verdict judge_seed(std::uint64_t seed) { return judge(program_of(seed), scrutiny_of(seed)); }

}  // namespace swapmm::test
