// SPDX-License-Identifier: Apache-2.0
// What the library says about plans of version 2, as JSON, one object per line, for the scripts of this folder.
//
//   cases FIRST_SEED SEEDS   random traces with plans, valid ones and others, which are printed, too
//   cases                    those of standard input: {"trace": ..., "plan": ...}, one per line
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <random>
#include <sstream>
#include <string>
#include <utility>

#include <boost/json.hpp>

#include <swapmm/formats/trace_json.hpp>
#include <swapmm/formats/v2/plan_json.hpp>
#include <swapmm/plan/v2/simulate.hpp>
#include <swapmm/plan/v2/validate.hpp>

#include "support/random_trace.hpp"
#include "support/v2/random_case.hpp"

namespace {

namespace json = boost::json;

json::object judged(const swapmm::Trace& trace, const swapmm::v2::Plan& plan) {
  json::array messages;
  json::array ends;
  for (const swapmm::Violation& violation : swapmm::v2::validate(trace, plan)) {
    messages.emplace_back("rule " + std::to_string(violation.rule) + ": " + violation.message);
  }
  if (messages.empty()) {
    for (const auto end : swapmm::v2::iteration_ends(trace, plan, 12)) ends.emplace_back(end.count());
  }
  return {{"valid", messages.empty()}, {"messages", std::move(messages)}, {"ends", std::move(ends)}};
}

json::object judged(const json::value& line) {
  const auto refused = [](const std::string& message) {
    return json::object{{"valid", false}, {"messages", json::array{message}}, {"ends", json::array{}}};
  };
  const auto trace = swapmm::read_trace(json::serialize(line.at("trace")));
  if (!trace) return refused("trace: " + trace.problem().message);
  const auto plan = swapmm::v2::read_plan(json::serialize(line.at("plan")));
  if (!plan) return refused("plan: " + plan.problem().message);
  return judged(*trace, *plan);
}

void print(const swapmm::test::general::Case& one, std::uint64_t seed, std::size_t changes) {
  std::ostringstream trace;
  std::ostringstream plan;
  swapmm::write_trace(trace, one.trace);
  swapmm::v2::write_plan(plan, one.plan);
  json::object line = judged(one.trace, one.plan);
  line["seed"] = seed;
  line["changes"] = changes;
  line["trace"] = json::parse(trace.str());
  line["plan"] = json::parse(plan.str());
  std::cout << line << '\n';
}

void print_random(std::uint64_t first, std::uint64_t seeds) {
  for (std::uint64_t seed = first; seed < first + seeds; ++seed) {
    std::mt19937_64 random(seed);
    auto one = swapmm::test::general::random_case(random);
    print(one, seed, 0);
    const std::size_t changes = swapmm::test::one_of(random, 4);
    for (std::size_t i = 1; i <= changes; ++i) {
      swapmm::test::general::mutate(random, one);
      print(one, seed, i);
    }
  }
}

}  // namespace

int main(int count, char** words) {
  if (count == 3) {
    print_random(std::strtoull(words[1], nullptr, 10), std::strtoull(words[2], nullptr, 10));
    return 0;
  }
  for (std::string line; std::getline(std::cin, line);) std::cout << judged(json::parse(line)) << '\n';
  return 0;
}
