// SPDX-License-Identifier: Apache-2.0
// Random programs for ./dev mutate, one after another in this process, up to the first that does not hold.
//   swapmm_mutation_programs SEED...                the programs of these seeds
//   swapmm_mutation_programs --reached FILE COUNT   those of seeds 1 to COUNT; FILE gets, for each of them, the seconds
//                                                   of the processor, the seed, and the mutants that it comes by

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <fstream>
#include <iostream>
#include <string_view>

#include "mutation/mutation.hpp"
#include "support/program/seeds.hpp"

namespace {

bool holds(std::uint64_t seed) {
  const swapmm::test::Verdict verdict = swapmm::test::judge_seed(seed);
  if (!verdict.failure.empty()) std::cout << "random program " << seed << ": " << verdict.failure << "\n";
  return verdict.failure.empty();
}

bool write_reached(const char* path, std::uint64_t count) {
  std::ofstream out(path);
  bool all = true;
  for (std::uint64_t seed = 1; seed <= count; ++seed) {
    std::fill(std::begin(swapmm_mutation::reached), std::end(swapmm_mutation::reached), false);
    const std::clock_t start = std::clock();
    all = holds(seed) && all;
    out << static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC << '\t' << seed << '\t';
    for (unsigned number = 1; number < swapmm_mutation::most; ++number) {
      if (swapmm_mutation::reached[number]) out << number << ' ';
    }
    out << '\n';
  }
  return all && static_cast<bool>(out.flush());
}

}  // namespace

int main(int count, char** words) {
  try {
    if (count == 4 && std::string_view(words[1]) == "--reached") {
      return write_reached(words[2], std::strtoull(words[3], nullptr, 10)) ? 0 : 1;
    }
    for (int i = 1; i < count; ++i) {
      if (!holds(std::strtoull(words[i], nullptr, 10))) return 1;
    }
    return 0;
  } catch (const std::exception& error) {
    std::cout << "random program: " << error.what() << "\n";
    return 1;
  }
}
