// SPDX-License-Identifier: Apache-2.0
// Every call that can fail does, once in each way, in programs that use all of the library. What holds then is
// written down in docs/reliability.md and judged in world.cpp.
//
// SWAPMM_FAULT_ROUNDS=n      n rounds over every call, each with other orders of the device's steps
// SWAPMM_FAULT_STRIDE=n      of the calls after the first few of a class, every n-th fails
// SWAPMM_FAULT_THREADS=n     on n cores
// SWAPMM_FAULT_REACHED=file  writes down what was reached
// SWAPMM_FAULT_SCENARIO=text only scenarios with that in their names
// SWAPMM_FAULT_REPLAY=text   the run that a problem of one of these tests, or of pairs_test.cpp, begins with

#include <doctest/doctest.h>

#include <cstdint>
#include <fstream>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "faults/loop/loop.hpp"
#include "faults/loop/scenarios.hpp"
#include "faults/loop/table.hpp"
#include "faults/loop/work.hpp"
#include "support/effort.hpp"

using namespace swapmm;
using namespace swapmm::test;

namespace {

// ./dev faults leaves out none.
std::uint64_t usual_stride() { return is_slow ? 61 : is_thorough() ? 5 : 71; }
const std::uint64_t orders = effort(12, 4);

struct Part {
  std::uint64_t round;
  const Scenario* scenario;
  FaultKind kind;
};

std::vector<Part> parts_of(std::uint64_t rounds) {
  std::vector<Part> parts;
  for (std::uint64_t round = 1; round <= rounds; ++round) {
    for (const Scenario& scenario : scenarios()) {
      for (const FaultKind& kind : fault_kinds()) parts.push_back({round, &scenario, kind});
    }
  }
  return parts;
}

}  // namespace

TEST_CASE("without a fault every program does what it is for, in any order of the device's steps") {
  for (const Scenario& scenario : scenarios()) {
    for (std::uint64_t seed = 1; seed <= orders; ++seed) {
      const RunResult run = run_with_faults(scenario, {}, seed);
      for (const std::string& problem : run.problems) CHECK_MESSAGE(false, problem);
      CHECK(run.hits.empty());
    }
  }
}

TEST_CASE("any one call that fails gives one error to one caller, and no value is lost without a word") {
  const std::uint64_t rounds = number_from_environment("SWAPMM_FAULT_ROUNDS", 1);
  const std::uint64_t stride = number_from_environment("SWAPMM_FAULT_STRIDE", usual_stride());
  const std::vector<Part> parts = parts_of(rounds);
  FaultTable table;
  in_parallel<LoopResult>(
      parts.size(), [&](std::size_t i) { return loop(*parts[i].scenario, parts[i].kind, parts[i].round, stride); },
      [&](std::size_t i, const LoopResult& result) {
        const Scenario* const scenario = parts[i].scenario;  // clang 14 captures no part of a structured binding
        const FaultKind& kind = parts[i].kind;
        for (const std::string& problem : result.problems) CHECK_MESSAGE(false, problem);
        const bool may_hide = !why_hidden(kind, *scenario).empty();
        CHECK_MESSAGE((may_hide || result.hidden == 0), scenario->name << ": " << result.hidden << " faults "
                                                                       << kind.text() << " that nobody was told of");
        table.add(kind, result, parts[i].round == 1);
      });
  for (const FaultKind& kind : fault_kinds()) {
    CHECK_MESSAGE(table.reached().count(kind) > 0, kind.text() << " fails nowhere");
  }
  if (stride == 1) {
    CHECK(table.runs() >= 50'000);
    CHECK(table.reached().size() >= 2'000);
  }
  table.print(std::cout);
  if (const std::string file = text_from_environment("SWAPMM_FAULT_REACHED"); !file.empty()) {
    std::ofstream out(file);
    table.print(out);
    table.reached().print(out << '\n');
    CHECK_MESSAGE(out.good(), file << " cannot be written");
  }
}

TEST_CASE("a run that failed is run once more" * doctest::skip()) {
  const RunResult run = replay(text_from_environment("SWAPMM_FAULT_REPLAY"));
  for (const std::string& problem : run.problems) CHECK_MESSAGE(false, problem);
}

TEST_CASE("what a problem says of its faults can be read again") {
  for (const FaultKind& kind : fault_kinds()) {
    const Faults faults{{kind, 3}, {fault_kinds().front(), 12}};
    const Faults read = faults_of(text_of(faults) + ", seed 5: and so on, then more");
    REQUIRE(read.size() == 2);
    CHECK(text_of(read) == text_of(faults));
  }
}
