// SPDX-License-Identifier: Apache-2.0
// Linear programs with blocks: their solution, and the same program with differences of rows.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include <swapmm/plan/v2/relaxation/solver/sparse_program.hpp>

namespace swapmm::v2::planning::sparse_program_test {
namespace {

constexpr std::uint32_t none = SparseProgram::no_row;

/// 4 units of a value, of which the first two choices differ in the rows that they use; row 0 needs 3, row 1 has 2.
SparseProgram small_program() {
  SparseProgram program;
  program.right_side = {3, 2};
  program.amounts = {4};
  const auto add = [&](std::vector<SparseProgram::Entry> entries, double cost, std::uint32_t block) {
    program.entries.insert(program.entries.end(), entries.begin(), entries.end());
    program.add_unknown(cost, block);
  };
  add({}, 0, 0);                               // uses nothing
  add({{0, 1}, {1, 1}}, 0, 0);                 // both rows
  add({{0, 1}}, 2, 0);                         // the first row alone, which costs 2
  add({{0, -1}}, 0, SparseProgram::no_block);  // more than row 0 needs
  add({{1, 1}}, 0, SparseProgram::no_block);   // what row 1 has left
  program.start.assign(5, 1.0);
  program.start_prices.assign(2, 0.0);
  return program;
}

double cost_of(const SparseProgram& program, const std::vector<double>& x) {
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += program.cost[i] * x[i];
  return sum;
}

TEST_CASE("a small program has the solution and the prices that one finds by hand") {
  const SparseProgram program = small_program();
  const SparseSolution found = solve_program(program, 1e-8, 60);
  REQUIRE(found.is_solved);
  // Two units use both rows, as row 1 has no more; the third one pays.
  CHECK(found.x[0] == doctest::Approx(1));
  CHECK(found.x[1] == doctest::Approx(2));
  CHECK(found.x[2] == doctest::Approx(1));
  CHECK(cost_of(program, found.x) == doctest::Approx(2));
  CHECK(found.prices[0] == doctest::Approx(2));
  CHECK(found.prices[1] == doctest::Approx(-2));
}

TEST_CASE("rows less those before them are the same program") {
  const SparseProgram program = small_program();
  SparseProgram differences = program;
  const std::vector<std::uint32_t> next = {1, none};
  subtract_previous(differences, next);
  CHECK(differences.right_side == std::vector<double>{3, -1});
  SparseSolution found = solve_program(differences, 1e-8, 60);
  REQUIRE(found.is_solved);
  CHECK(found.x[1] == doctest::Approx(2));
  add_next(found.prices, next);
  CHECK(found.prices[0] == doctest::Approx(2));
  CHECK(found.prices[1] == doctest::Approx(-2));
}

TEST_CASE("what is in many rows one after another has two entries in differences of them") {
  SparseProgram program;
  constexpr std::uint32_t rows = 40;
  program.right_side.assign(rows, 1.0);
  program.start_prices.assign(rows, 2.0);
  for (std::uint32_t r = 10; r < 30; ++r) program.entries.push_back({r, 0.1});
  program.add_unknown(1, SparseProgram::no_block);
  std::vector<std::uint32_t> next(rows, none);
  for (std::uint32_t r = 0; r + 1 < rows; ++r) next[r] = r + 1;
  subtract_previous(program, next);
  REQUIRE(program.entries.size() == 2);
  CHECK(program.entries[0] == SparseProgram::Entry{10, 0.1});
  CHECK(program.entries[1] == SparseProgram::Entry{30, -0.1});
  CHECK(program.right_side[0] == 1);
  CHECK(program.right_side[1] == 0);
  std::vector<double> prices = program.start_prices;
  add_next(prices, next);
  CHECK(prices == std::vector<double>(rows, 2.0));
}

TEST_CASE("random programs have the same value with and without differences, and prices prove it") {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    const auto below = [&](std::uint64_t end) { return static_cast<std::uint32_t>(random() % end); };
    SparseProgram program;
    const std::uint32_t rows = 3 + below(20);
    const std::uint32_t blocks = 1 + below(12);
    std::vector<std::uint32_t> next(rows, none);
    for (std::uint32_t r = 0; r + 1 < rows; ++r) next[r] = r + 1;
    for (std::uint32_t b = 0; b < blocks; ++b) {
      program.amounts.push_back(1 + below(9));
      program.add_unknown(0, b);
      for (std::uint32_t c = below(5); c > 0; --c) {
        const std::uint32_t first = below(rows);
        const std::uint32_t last = first + below(rows - first);
        for (std::uint32_t r = first; r <= last; ++r) program.entries.push_back({r, 1.0});
        program.add_unknown(1 + below(20), b);
      }
    }
    for (std::uint32_t r = 0; r < rows; ++r) {
      program.right_side.push_back(below(12));
      program.entries.push_back({r, -1.0});
      program.add_unknown(0, SparseProgram::no_block);
      program.entries.push_back({r, 1.0});
      program.add_unknown(1000, SparseProgram::no_block);
    }
    program.start.assign(program.unknowns(), 1.0);
    program.start_prices.assign(rows, 1.0);
    const SparseSolution plain = solve_program(program, 1e-6, 80);
    SparseProgram differences = program;
    subtract_previous(differences, next);
    SparseSolution other = solve_program(differences, 1e-6, 80);
    add_next(other.prices, next);
    REQUIRE(plain.is_solved);
    REQUIRE(other.is_solved);
    const double value = cost_of(program, plain.x);
    CHECK(cost_of(program, other.x) == doctest::Approx(value).epsilon(1e-4));
    // The Lagrangian at the prices: the least that each block can cost, and what rows pay.
    for (const bool with_differences : {false, true}) {
      const SparseSolution* const found = with_differences ? &other : &plain;
      double bound = 0;
      std::vector<double> least(blocks, 1e300);
      for (std::size_t i = 0; i < program.unknowns(); ++i) {
        double reduced = program.cost[i];
        for (std::size_t e = program.first[i]; e < program.first[i + 1]; ++e) {
          reduced -= program.entries[e].value * found->prices[program.entries[e].row];
        }
        if (program.block[i] != SparseProgram::no_block) {
          least[program.block[i]] = std::min(least[program.block[i]], reduced);
        } else {
          CHECK(reduced > -1e-3);
        }
      }
      for (std::uint32_t b = 0; b < blocks; ++b) bound += least[b] * program.amounts[b];
      for (std::uint32_t r = 0; r < rows; ++r) bound += program.right_side[r] * found->prices[r];
      CHECK(bound == doctest::Approx(value).epsilon(1e-4));
    }
  }
}

}  // namespace
}  // namespace swapmm::v2::planning::sparse_program_test
