// SPDX-License-Identifier: Apache-2.0
// Two faults in one run, judged like one.
//
// SWAPMM_FAULT_PAIRS=n    so many pairs; with the threads of fault_test.cpp, and with a line of progress now and then
// SWAPMM_FAULT_SEED=n     drawn from there

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iostream>
#include <string>

#include "faults/loop/pairs.hpp"
#include "faults/loop/work.hpp"
#include "support/effort.hpp"

using namespace swapmm;
using namespace swapmm::test;

namespace {

const std::uint64_t usual_pairs = effort(6'000, 30);
constexpr std::size_t chunk = 100;

class Progress {
 public:
  void show(std::size_t pairs, std::size_t wanted) {
    const auto now = std::chrono::steady_clock::now();
    if (now - shown_ < std::chrono::seconds{10} && pairs < wanted) return;
    shown_ = now;
    const double seconds = std::chrono::duration<double>(now - begin_).count();
    std::cout << pairs << " pairs, " << static_cast<std::uint64_t>(static_cast<double>(pairs) / seconds) << " a second"
              << std::endl;
  }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point shown_ = begin_;
};

}  // namespace

TEST_CASE("two calls that fail give two errors at most, and no value is lost without a word") {
  const std::uint64_t wanted = number_from_environment("SWAPMM_FAULT_PAIRS", usual_pairs);
  const std::uint64_t first_seed = number_from_environment("SWAPMM_FAULT_SEED", 1);
  LoopResult all;
  Progress progress;
  std::uint64_t chunks = 0;
  while (all.runs < wanted) {  // not every draw comes about
    const std::uint64_t left = wanted - all.runs;
    const std::size_t round = static_cast<std::size_t>(std::clamp<std::uint64_t>(left / chunk, 1, 64));
    in_parallel<LoopResult>(
        round, [&](std::size_t i) { return run_pairs(first_seed * 1'000'003 + chunks + i, chunk); },
        [&](std::size_t, const LoopResult& result) {
          for (const std::string& problem : result.problems) CHECK_MESSAGE(false, problem);
          all.add(result);
          progress.show(all.runs, wanted);
        });
    chunks += round;
  }
  CHECK(all.runs >= wanted);
  std::cout << all.runs << " runs with two faults, at " << all.reached.sites() << " call sites\n";
}
