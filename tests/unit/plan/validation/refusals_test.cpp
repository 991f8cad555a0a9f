// SPDX-License-Identifier: Apache-2.0
// What validate() says of many plans with something changed in them, as a whole: how often each message, and the first
// of each in full. tests/data/validation/refusals.txt is the accepted text. It depends on no planner.

#include <doctest/doctest.h>

#include <cctype>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <swapmm/ir/liveness.hpp>
#include <swapmm/plan/validate.hpp>

#include "support/brute_plans.hpp"
#include "support/golden.hpp"
#include "support/plan_mutations.hpp"
#include "support/random_trace.hpp"

using namespace swapmm;
using namespace swapmm::test;

namespace {

constexpr int programs_to_change = 700;
constexpr int plans_of_one = 6;

/// With each number as #, without names, brackets, and how a circle goes on: what is alike reads alike.
std::string kind_of_message(const std::string& message) {
  std::string kind;
  bool quoted = false;
  int brackets = 0;
  const std::size_t circle = message.find("circle:");
  for (const char c : message.substr(0, circle)) {
    if (c == '"') quoted = !quoted;
    if (c == '(') ++brackets;
    if (c == ')' && brackets > 0) --brackets;
    if (quoted || brackets > 0 || c == '"' || c == ')' || (c == ' ' && kind.ends_with(' '))) continue;
    if (std::isdigit(static_cast<unsigned char>(c)) == 0) {
      kind += c;
    } else if (!kind.ends_with('#')) {
      kind += '#';
    }
  }
  return kind;
}

struct RefusalTable {
  int plans = 0;
  int accepted = 0;
  struct Message {
    int count = 0;
    std::string first;
  };
  std::map<std::string, Message> messages;  // by rule and kind

  void add(const std::string& changes, const std::vector<Violation>& violations) {
    ++plans;
    if (violations.empty()) ++accepted;
    for (const Violation& violation : violations) {
      const std::string rule = std::to_string(violation.rule) + ": ";
      Message& message = messages[rule + kind_of_message(violation.message)];
      if (message.count++ == 0) message.first = changes + "\n      " + rule + violation.message;
    }
  }
  [[nodiscard]] std::string text() const {
    std::string text = std::to_string(plans) + " plans, " + std::to_string(accepted) + " of them accepted\n";
    for (const auto& [kind, message] : messages) {
      text += '\n' + std::to_string(message.count) + " times " + kind + "\n  the first: " + message.first + '\n';
    }
    return text;
  }
};

std::optional<Plan> plainest_plan(std::mt19937_64& random, const Trace& trace) {
  Bytes all;
  for (const TraceTensor& tensor : trace.tensors) all += tensor.bytes + Bytes{64};
  const Bytes bundle = analyze_liveness(trace, Bytes{64}).largest_bundle;
  return brute_plan(trace, random_machine(random, chance(random, 0.6) ? all : bundle));
}

}  // namespace

TEST_CASE("what is said of plans with something changed in them is what was accepted") {
  RefusalTable table;
  for (std::uint64_t seed = 1; seed <= programs_to_change; ++seed) {
    std::mt19937_64 random{seed};
    RandomTraceOptions options;
    options.operations = 1 + one_of(random, 6);
    options.tensors = 1 + one_of(random, 5);
    options.host_reads = chance(random, 0.5) ? 0.3 : 0.0;
    const Trace trace = random_trace(random, options);
    const std::optional<Plan> plain = plainest_plan(random, trace);
    if (!plain) continue;
    for (int nth = 0; nth < plans_of_one; ++nth) {
      Plan plan = *plain;
      if (nth % 2 == 1) spread_out(trace, plan);
      std::string changes = "program " + std::to_string(seed) + (nth % 2 == 1 ? ", spread out" : "");
      const std::size_t count = 1 + one_of(random, 3);
      for (std::size_t change = 0; change < count; ++change) {
        changes += ", " + std::string(mutate(random, trace, plan));
      }
      table.add(changes, validate(trace, plan));
    }
  }
  check_golden("validation/refusals.txt", table.text());
}
