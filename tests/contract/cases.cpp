// SPDX-License-Identifier: Apache-2.0
// Prints random traces with plans of version 2, valid ones and others, one JSON object per line, with what the library
// says about them: for plan_v2_compare.py.
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <random>
#include <sstream>
#include <string>

#include <swapmm/formats/trace_json.hpp>
#include <swapmm/formats/v2/plan_json.hpp>
#include <swapmm/plan/v2/simulate.hpp>
#include <swapmm/plan/v2/validate.hpp>

#include "support/random_trace.hpp"
#include "support/v2/random_case.hpp"

namespace {

template <class Write, class Data>
std::string one_line(Write&& write, const Data& data) {
  std::ostringstream out;
  write(out, data);
  std::string text = out.str();
  for (char& c : text) {
    if (c == '\n') c = ' ';
  }
  return text;
}

void print(const swapmm::test::v2::Case& one, std::uint64_t seed, int changes) {
  const auto violations = swapmm::v2::validate(one.trace, one.plan);
  std::cout << "{\"seed\": " << seed << ", \"changes\": " << changes << ", \"valid\": " << (violations.empty() ? "true" : "false")
            << ", \"messages\": [";
  // Messages have names of tensors in quotes.
  for (std::size_t i = 0; i < violations.size() && i < 3; ++i) {
    std::string text = violations[i].message;
    for (char& c : text) {
      if (c == '"') c = '\'';
    }
    std::cout << (i > 0 ? ", " : "") << "\"rule " << violations[i].rule << ": " << text << '"';
  }
  std::cout << "], \"ends\": [";
  if (violations.empty()) {
    const auto ends = swapmm::v2::iteration_ends(one.trace, one.plan, 12);
    for (std::size_t i = 0; i < ends.size(); ++i) std::cout << (i > 0 ? ", " : "") << ends[i].count();
  }
  const auto write_plan = [](std::ostream& out, const swapmm::v2::Plan& plan) { swapmm::v2::write_plan(out, plan); };
  std::cout << "], \"trace\": " << one_line(swapmm::write_trace, one.trace) << ", \"plan\": " << one_line(write_plan, one.plan)
            << "}\n";
}

}  // namespace

int main(int count, char** words) {
  const std::uint64_t first = count > 1 ? std::strtoull(words[1], nullptr, 10) : 1;
  const std::uint64_t seeds = count > 2 ? std::strtoull(words[2], nullptr, 10) : 1;
  for (std::uint64_t seed = first; seed < first + seeds; ++seed) {
    std::mt19937_64 random(seed);
    auto one = swapmm::test::v2::random_case(random);
    print(one, seed, 0);
    const std::size_t changes = swapmm::test::one_of(random, 4);
    for (std::size_t i = 1; i <= changes; ++i) {
      swapmm::test::v2::mutate(random, one);
      print(one, seed, static_cast<int>(i));
    }
  }
}
