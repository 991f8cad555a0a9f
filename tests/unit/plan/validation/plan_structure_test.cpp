// SPDX-License-Identifier: Apache-2.0
// What is said of plans that name things that do not exist, in full, and how much is said of plans with many faults.

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <swapmm/ir/limits.hpp>
#include <swapmm/plan/validate.hpp>

#include "support/plan_text.hpp"
#include "support/told.hpp"

using namespace swapmm;
using namespace swapmm::test;

namespace {

std::string shown_digest(const Trace& trace, const std::string& other) {
  Plan changed = plan(trace, machine(100), {}, {});
  changed.trace_digest = other;
  return told(trace, changed);
}

/// What is said of a plan of one command that waits so.
std::string said_of_wait(const Wait& wait) {
  const Trace trace = unused_constants(1);
  return told(trace, plan(trace, machine(100), {resident(0, 0, true)}, {swap_out(0, {op(-1), wait})}));
}

}  // namespace

TEST_CASE("rule 0: of another program's digest 64 characters are shown, which is all of a digest") {
  const Trace trace = unused_constants(1);
  const std::string whole = std::string(64, '7');
  const std::string own = ", this one is " + digest(trace) + '\n';
  CHECK(shown_digest(trace, whole) == "0: trace: the plan is for program \"" + whole + "\"" + own);
  CHECK(shown_digest(trace, whole + '7') == "0: trace: the plan is for program \"" + whole + "...\"" + own);
  CHECK(shown_digest(trace, "") == "0: trace: the plan is for program \"\"" + own);
}

TEST_CASE("rule 0: what is said of a wait for something that does not exist") {
  CHECK(said_of_wait(op(0)) == "");
  CHECK(said_of_wait(op(1)) == "0: commands[0].after[1]: 1 is not one of the 1 operations or those before\n");
  CHECK(said_of_wait(op(-2)) == "0: commands[0].after[1]: -2 is not one of the 1 operations or those before\n");
  CHECK(said_of_wait(previous_cmd(0)) == "");
  CHECK(said_of_wait(cmd(1)) == "0: commands[0].after[1]: 1 is not one of the 1 commands\n");
  CHECK(said_of_wait(previous_cmd(-1)) == "0: commands[0].after[1]: -1 is not one of the 1 commands\n");
}

TEST_CASE("rule 0: an operation of the iteration before goes by its number below 0, and not by previous") {
  const std::string said =
      "0: commands[0].after[1]: previous is for commands, an operation of the iteration before has a negative number\n";
  CHECK(said_of_wait({Wait::On::operation, true, 0}) == said);
  CHECK(said_of_wait({Wait::On::operation, true, -1}) == said);
}

TEST_CASE("rule 0: a tensor that does not exist is not also on the device twice") {
  const Trace trace = unused_constants(4);
  const auto twice = [&](std::uint32_t id) {
    return told(trace, plan(trace, machine(100), {resident(id, 0, true), resident(id, 50, true)}, {}));
  };
  for (const std::uint32_t id : {std::uint32_t{4}, std::uint32_t{9}, UINT32_MAX}) {
    const std::string reason = "].tensor: " + std::to_string(id) + " is not the id of one of the 4 tensors\n";
    CHECK(twice(id) == "0: initial[0" + reason + "0: initial[1" + reason);
  }
  CHECK(twice(3) == "5: initial[1]: tensor 3 is on the device twice\n");
}

TEST_CASE("a plan may have 2^24 commands, and is not looked into if it has more") {
  const Trace trace = unused_constants(0);
  Plan many = plan(trace, machine(100), {}, std::vector<Command>(limits::commands + 1));
  CHECK(told(trace, many) == "0: commands: 16777217 are more than the 16777216 that a plan may have\n");
  many.commands.pop_back();
  const std::vector<Violation> violations = validate(trace, many);
  REQUIRE(violations.size() == 100);
  CHECK(violations.front().message == "commands[0].tensor: 0 is not the id of one of the 0 tensors");
}

TEST_CASE("of a single command no more than 100 violations are told either") {
  const Trace trace = unused_constants(1);
  const std::vector<Violation> violations =
      validate(trace, plan(trace, machine(100), {}, {swap_out(0, Waits(300, cmd(1)))}));
  REQUIRE(violations.size() == 100);
  CHECK(violations.front().message == "commands[0].after[0]: 1 is not one of the 1 commands");
  CHECK(violations.back().message == "commands[0].after[99]: 1 is not one of the 1 commands");
}

TEST_CASE("after 100 violations the tensors behind are not examined, and nothing that needs it is") {
  const Trace trace = unused_constants(150);
  std::vector<Command> commands;
  for (std::uint32_t t = 0; t < 150; ++t) commands.push_back(release(t, {op(0)}));
  const std::vector<Violation> violations = validate(trace, plan(trace, machine(10'000), {}, commands));
  REQUIRE(violations.size() == 100);
  CHECK(violations.back().rule == 5);
  CHECK(violations.back().message == "command 99 (release of tensor 99) releases a tensor that is not on the device");
}

TEST_CASE("a plan that leaves hundreds of tensors where they are is valid") {
  for (const std::uint32_t count : {63U, 64U, 65U, 128U, 192U, 320U, 704U}) {
    const Trace trace = unused_constants(count);
    Plan still = plan(trace, machine(10'000), {}, {});
    for (std::uint32_t t = 0; t < count; ++t) still.initial.push_back(resident(t, 10 * std::uint64_t{t}, true));
    CHECK(told(trace, still) == "");
  }
}
