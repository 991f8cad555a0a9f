// SPDX-License-Identifier: Apache-2.0
#include "support/program/seeds.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <random>
#include <utility>
#include <vector>

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

TestProgram program_with(std::uint64_t seed, std::size_t operations) {
  TestProgram program = random_program(seed, operations);
  // Most random programs read inside iterations, and would count as programs that branch.
  constexpr std::array rules{DropRule::observed, DropRule::by_evidence, DropRule::observed, DropRule::proven};
  program.scheduler.drops = rules[seed / 3 % rules.size()];
  return program;
}

/// Its last iteration, and what follows it, so many times more.
void prolong(TestProgram& program, std::size_t times) {
  std::vector<Action>& actions = program.actions;
  const auto begins = [](const Action& action) { return action.kind == ActionKind::begin_iteration; };
  const std::vector<Action> tail(std::find_if(actions.rbegin(), actions.rend(), begins).base() - 1, actions.end());
  for (; times > 0; --times) actions.insert(actions.end(), tail.begin(), tail.end());
}

/// Programs on several devices.
class Company {
 public:
  explicit Company(std::uint64_t seed) : seed_(seed), random_(seed ^ 0x51DEU) {}

  TestProgram draw() {
    const bool alike = one_in(2);
    const TestProgram first = another();
    TestProgram program = first;
    for (std::size_t others = 1 + random_() % 3; others > 0; --others) {
      program.beside.push_back(alike ? first : another());
    }
    program.sharing.one_clock = !one_in(6);
    program.sharing.in_turn = !one_in(3);
    LinkCapacities& capacities = program.sharing.capacities;
    const auto some = [&](std::uint64_t of_one) { return of_one / 4 * (1 + random_() % 8); };
    if (one_in(2)) {
      capacities.both_ways = some(program.device.h2d.bytes_per_second);
    } else {
      capacities.to_devices = some(program.device.h2d.bytes_per_second);
      capacities.from_devices = some(program.device.d2h.bytes_per_second);
    }
    return program;
  }

 private:
  bool one_in(std::uint64_t count) { return random_() % count == 0; }

  /// Mostly one that repeats itself.
  TestProgram another() {
    TestProgram program;
    for (std::size_t tries = one_in(5) ? 1 : 12; tries > 0 && !program.steady; --tries) {
      program = program_with(seed_ + 1'000'003 * drawn_++, 30 + random_() % 90);
    }
    return prepared(std::move(program));
  }

  /// For a clock that it shares; nearly always such that its manager takes part in joint plans.
  TestProgram prepared(TestProgram program) {
    prolong(program, random_() % 32);
    program.device.order = simulated::Order::virtual_time;
    program.device.half_duplex = false;
    if (one_in(8)) return program;
    program.scheduler.planner = "best";
    program.scheduler.observe = std::max<std::size_t>(program.scheduler.observe, 1);
    if (!one_in(4)) program.scheduler.planning = Planning::immediate;
    if (!one_in(3)) program.scheduler.trial_iterations = 0;
    program.scheduler.max_sequences = SchedulerOptions().max_sequences;
    program.neighbours.clear();
    program.codec_staging = {};
    if (program.file) {
      program.file.reset();
      program.manager.file_staging = Options().file_staging;
      program.manager.host_budget = Options().host_budget;
    }
    return program;
  }

  std::uint64_t seed_;
  std::uint64_t drawn_ = 0;
  std::mt19937_64 random_;
};

}  // namespace

TestProgram program_of(std::uint64_t seed) {
  if (seed % 16 == 10) return Company(seed).draw();
  TestProgram program = program_with(seed, 30 + seed * 37 % 91);
  if (seed % 16 == 5) declare_replayable(program);
  return program;
}

Scrutiny scrutiny_of(std::uint64_t seed) {
  return {.again = seed % 50 == 0, .on_demand = seed % 7 == 0, .advised = seed % 8 == 3};
}

Verdict judge_seed(std::uint64_t seed) { return judge(program_of(seed), scrutiny_of(seed)); }

}  // namespace swapmm::test
