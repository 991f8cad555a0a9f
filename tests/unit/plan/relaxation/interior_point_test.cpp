// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <vector>

#include <swapmm/plan/relaxation/solver/cholesky.hpp>
#include <swapmm/plan/relaxation/solver/interior_point.hpp>

#include "support/random_trace.hpp"

using namespace swapmm;
using namespace swapmm::planning::relaxation;

namespace {

CoarseProgram make_program(std::vector<double> duration, std::vector<double> excess) {
  CoarseProgram program;
  program.starts_with_row.assign(duration.size(), false);
  program.duration = std::move(duration);
  program.excess = std::move(excess);
  return program;
}

/// The Lagrangian of the program at the solution's prices: a lower bound of its optimum, whatever they are.
double dual_value(const CoarseProgram& program, const ProgramSolution& solution) {
  std::vector<double> in = solution.in;
  std::vector<double> out = solution.out;
  double value = 0;
  for (std::size_t g = 0; g < program.duration.size(); ++g) {
    if (program.half_duplex) out[g] = in[g];
    const double sum = program.half_duplex ? in[g] : in[g] + out[g];
    if (sum > 1) {
      in[g] /= sum;
      out[g] /= sum;
    }
    value -= program.duration[g] * std::min(sum, 1.0);
    value += std::max(0.0, program.excess[g]) * solution.room[g];
  }
  const auto at = [&](const std::vector<double>& prices, int group) {
    return prices[static_cast<std::size_t>(group) % prices.size()];
  };
  for (const OptionBlock& block : program.blocks) {
    double best = -1e300;
    for_each_option(program, block, [&](std::size_t, int out_group, int in_group, int first_row, int last_row) {
      double gain = 0;
      for (int row = first_row; row <= last_row; ++row) gain += block.room * at(solution.room, row);
      if (runs_again(out_group, in_group, first_row, last_row)) {
        const double links = at(in, block.last_in) + (program.half_duplex ? 0 : at(out, block.last_in));
        gain -= block.again * (1 - links);
      }
      if (in_group >= 0) gain -= block.read * at(in, in_group);
      if (out_group >= 0) gain -= block.write * at(out, out_group);
      best = std::max(best, gain);
    });
    value -= block.amount * best;
  }
  return value;
}

CoarseProgram random_program(std::mt19937_64& random) {
  const int groups = 1 + static_cast<int>(test::one_of(random, 9));
  const auto part = [&] { return static_cast<double>(test::below_or_equal(random, 1000)) / 1000; };
  CoarseProgram program = make_program({}, {});
  program.half_duplex = test::chance(random, 0.3);
  for (int g = 0; g < groups; ++g) {
    program.duration.push_back(test::chance(random, 0.2) ? 0 : part() / groups);
    program.starts_with_row.push_back(test::chance(random, 0.5));
  }
  std::vector<double> freed(program.duration.size(), 0.0);
  const std::size_t blocks = 1 + test::one_of(random, 8);
  for (std::size_t b = 0; b < blocks; ++b) {
    OptionBlock block;
    block.amount = 0.01 + part();
    block.room = 0.5 + part();
    block.is_clean = test::chance(random, 0.4);
    block.write = block.is_clean ? 0 : 0.5 + part();
    block.may_stay = test::chance(random, 0.8);
    block.may_only_write = !block.is_clean && !block.may_stay;
    const int length = static_cast<int>(test::one_of(random, static_cast<std::size_t>(groups)));
    block.first_out = static_cast<int>(test::one_of(random, static_cast<std::size_t>(groups)));
    block.first_row =
        block.first_out + static_cast<int>(test::one_of(random, static_cast<std::size_t>(groups - length)));
    block.last_row = block.first_row + length;
    block.first_in = block.first_row;
    block.last_in = block.last_row;
    block.last_out = block.is_clean ? block.first_out : block.last_row;
    if (!block.is_clean && test::chance(random, 0.3)) {
      block.read = 0;
      block.first_in = block.last_in;
    }
    block.may_run_again = test::chance(random, 0.3);
    if (block.may_run_again) block.again = 2 * part();
    add_block(program, block);
    if (!block.is_clean && program.first_freed(block.first_out) > block.first_row) continue;
    for (int row = block.first_row; row <= block.last_row; ++row) {
      freed[static_cast<std::size_t>(row % groups)] += block.amount * block.room;
    }
  }
  // What is asked for can be had.
  for (const double most : freed) program.excess.push_back(test::chance(random, 0.3) ? -1 : most * part() * 0.9);
  return program;
}

}  // namespace

TEST_CASE("a copy that is owed stalls for what the group has not") {
  CoarseProgram program = make_program({0.4}, {0});
  OptionBlock block;
  block.amount = 1;
  block.is_clean = true;
  block.first_in = block.last_in = 0;
  add_block(program, block);
  const ProgramSolution solution = solve_program(program);
  CHECK(solution.is_solved);
  CHECK(solution.objective == doctest::Approx(0.6).epsilon(1e-4));
  CHECK(solution.in[0] == doctest::Approx(1).epsilon(1e-3));
}

TEST_CASE("room is freed by who pays least for it") {
  // One block comes back where there is time, the other where there is none; half of both must go.
  CoarseProgram program = make_program({1, 0}, {1, 0});
  for (const int in : {0, 1}) {
    OptionBlock block;
    block.amount = 1;
    block.room = 1;
    block.is_clean = true;
    block.may_stay = true;
    block.first_row = block.last_row = 0;
    block.first_in = block.last_in = in;
    add_block(program, block);
  }
  const ProgramSolution solution = solve_program(program);
  CHECK(solution.objective == doctest::Approx(0).scale(1).epsilon(1e-4));
  CHECK(solution.options[1] == doctest::Approx(1).epsilon(1e-2));
}

TEST_CASE("a copy out comes before the room that it frees") {
  // Written in group 0, whose row lies at its start: only the row of group 1 can be freed, by a copy out in group 0.
  for (const bool half_duplex : {false, true}) {
    CoarseProgram program = make_program({0.25, 0.25}, {0, 1});
    program.half_duplex = half_duplex;
    program.starts_with_row = {true, true};
    OptionBlock block;
    block.amount = 1;
    block.room = 1;
    block.write = 2;
    block.may_stay = true;
    block.first_out = 0;
    block.last_out = 1;
    block.first_row = block.last_row = 1;
    block.first_in = block.last_in = 1;
    add_block(program, block);
    const ProgramSolution solution = solve_program(program);
    CHECK(solution.objective == doctest::Approx(1.75 + 0.75).epsilon(1e-4));
    CHECK(solution.stall[0] == doctest::Approx(1.75).epsilon(1e-3));
  }
}

TEST_CASE("what never returns takes the link out alone") {
  // Copies in take all the time there is.
  for (const bool half_duplex : {false, true}) {
    CoarseProgram program = make_program({0.25, 0.25}, {0, 1});
    program.half_duplex = half_duplex;
    OptionBlock owed;
    owed.amount = 0.5;
    owed.is_clean = true;
    owed.first_in = 0;
    owed.last_in = 1;
    add_block(program, owed);
    OptionBlock gone;
    gone.amount = 1;
    gone.room = 1;
    gone.read = 0;
    gone.write = 1;
    gone.may_stay = true;
    gone.first_out = 0;
    gone.last_out = 1;
    gone.first_row = gone.last_row = 1;
    gone.first_in = gone.last_in = 1;
    add_block(program, gone);
    const ProgramSolution solution = solve_program(program);
    CHECK(solution.objective == doctest::Approx(half_duplex ? 1 : 0.5).epsilon(1e-4));
  }
}

TEST_CASE("what is computed again takes time, which the links have, too") {
  // One of two must be away. A copy takes 1 each way, and the computation `again`: its time serves the copy of the
  // other part.
  for (const double again : {0.25, 0.5, 1.0, 3.0}) {
    CAPTURE(again);
    CoarseProgram program = make_program({0}, {1});
    OptionBlock block;
    block.amount = 1;
    block.room = 1;
    block.write = 1;
    block.may_run_again = true;
    block.again = again;
    block.first_row = block.last_row = 0;
    block.first_in = block.last_in = 0;
    add_block(program, block);
    // Made again in part z: z again of time, of which the copies need 1 - z each way.
    const ProgramSolution solution = solve_program(program);
    CHECK(solution.is_solved);
    CHECK(solution.objective == doctest::Approx(again / (1 + again)).epsilon(1e-4));
    CHECK(solution.options[0] == doctest::Approx(1 / (1 + again)).epsilon(1e-3));
    program.half_duplex = true;  // 2 (1 - z) = z again
    const ProgramSolution half = solve_program(program);
    CHECK(half.objective == doctest::Approx(2 * again / (2 + again)).epsilon(1e-4));
  }
}

TEST_CASE("the solution of random programs is proven by its prices") {
  std::mt19937_64 random(31);
  int stalled = 0;
  int unsolved = 0;
  for (int round = 0; round < 2000; ++round) {
    CAPTURE(round);
    const CoarseProgram program = random_program(random);
    const ProgramSolution solution = solve_program(program, {100, 1e-7});
    if (!solution.is_solved) ++unsolved;
    CHECK(dual_value(program, solution) == doctest::Approx(solution.objective).scale(1).epsilon(1e-4));
    for (const OptionBlock& block : program.blocks) {
      double sum = 0;
      for (std::size_t i = 0; i < block.options; ++i) sum += solution.options[block.first_option + i];
      CHECK(sum == doctest::Approx(block.amount).epsilon(1e-5));
    }
    if (solution.objective > 1e-3) ++stalled;
  }
  CHECK(stalled > 500);
  CHECK(unsolved <= 2);  // by their residuals; their prices are as good
}

TEST_CASE("a Cholesky factor solves, and leaves out what has no curvature") {
  SymmetricMatrix matrix(3);
  matrix.add(0, 0, 4);
  matrix.add(0, 1, 2);
  matrix.add(1, 1, 5);
  std::vector<double> vector{8, 12, 7};
  factorize(matrix);
  solve_with_factor(matrix, vector);
  CHECK(vector[0] == doctest::Approx(1));
  CHECK(vector[1] == doctest::Approx(2));
  CHECK(vector[2] == doctest::Approx(0));
}
