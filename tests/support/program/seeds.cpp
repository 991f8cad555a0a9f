// SPDX-License-Identifier: Apache-2.0
#include "support/program/seeds.hpp"

#include <array>
#include <random>

#include "support/random_program.hpp"

namespace swapmm::test {

namespace {

/// Some operations may run again, on a device where that is cheaper than copies.
void declare_replayable(TestProgram& program) {
  program.scheduler.planner = "best";
  program.scheduler.machine.reset();
  program.scheduler.drops = DropRule::observed;  // plans that drop only what is proven dead have no replays
  program.device.h2d.bytes_per_second = 20'000'000;
  program.device.d2h.bytes_per_second = 20'000'000;
  std::mt19937_64 random(program.seed);
  for (Action& action : program.actions) {
    if (action.kind == ActionKind::operation) action.form.replayable = random() % 4 != 0;
  }
}

}  // namespace

TestProgram program_of(std::uint64_t seed) {
  TestProgram program = random_program(seed, 30 + seed * 37 % 91);
  // Most random programs read inside iterations, and would count as programs that branch.
  constexpr std::array rules{DropRule::observed, DropRule::by_evidence, DropRule::observed, DropRule::proven};
  program.scheduler.drops = rules[seed / 3 % rules.size()];
  if (seed % 16 == 5) declare_replayable(program);
  return program;
}

Scrutiny scrutiny_of(std::uint64_t seed) {
  return {.again = seed % 50 == 0, .on_demand = seed % 7 == 0, .advised = seed % 8 == 3};
}

Verdict judge_seed(std::uint64_t seed) { return judge(program_of(seed), scrutiny_of(seed)); }

}  // namespace swapmm::test
