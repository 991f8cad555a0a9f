// SPDX-License-Identifier: Apache-2.0
//
// Random programs as they run on real devices: scaled to a larger alignment they are as tight as before, and hold.

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <limits>

#include "support/program/runner.hpp"
#include "support/program/scale.hpp"
#include "support/random_program.hpp"

using namespace swapmm;
using namespace swapmm::test;

TEST_CASE("scaled to a larger alignment, all sizes and budgets of a program grow by one factor") {
  for (const Bytes alignment : {Bytes{64}, Bytes{128}, Bytes{256}}) {
    for (std::uint64_t seed = 1; seed <= 200; ++seed) {
      CAPTURE(seed);
      const TestProgram drawn = random_program(seed, 30);
      const TestProgram program = scaled_to(alignment, drawn);
      const std::uint64_t factor = alignment.value / drawn.device.alignment.value;
      CHECK(program.device.alignment == alignment);
      CHECK_FALSE(limits_memory(program));
      CHECK(program.manager.device_budget.value == drawn.manager.device_budget.value * factor);
      const bool pinned_limited = drawn.manager.pinned_budget.value != std::numeric_limits<std::uint64_t>::max();
      CHECK(program.manager.pinned_budget.value == drawn.manager.pinned_budget.value * (pinned_limited ? factor : 1));
      REQUIRE(program.actions.size() == drawn.actions.size());
      bool same = true;
      for (std::size_t i = 0; i < program.actions.size(); ++i) {
        const Bytes before = round_up(Bytes{drawn.actions[i].bytes}, drawn.device.alignment);
        same = same && round_up(Bytes{program.actions[i].bytes}, alignment).value == before.value * factor;
        const bool odd = program.actions[i].bytes % 2 != 0;
        if (factor > 1) same = same && odd == (drawn.actions[i].bytes % 8 != 0);
      }
      CHECK(same);
    }
  }
}

TEST_CASE("scaled programs hold on the simulated device") {
  std::uint64_t followed = 0;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    const RunResult run = run_program(scaled_to(Bytes{128}, random_program(seed, 30)));
    CHECK_MESSAGE(run.failure.empty(), "seed " << seed << ": " << run.failure);
    followed += run.iterations_followed;
  }
  CHECK(followed > 100);
}
