// SPDX-License-Identifier: Apache-2.0
// What is said of waits that go in a circle or far back, in full, and of commands that wait for nothing.

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "support/plan_text.hpp"
#include "support/told.hpp"

using namespace swapmm;
using namespace swapmm::test;

namespace {

std::string release_name(std::uint32_t j) {
  return "command " + std::to_string(j) + " (release of tensor " + std::to_string(j) + ")";
}

/// What is said of so many releases, each of which waits for the next one, and the last for the first.
std::string said_of_circle(std::uint32_t count) {
  std::vector<Command> commands;
  for (std::uint32_t j = 0; j < count; ++j) {
    commands.push_back(release(j, {cmd(static_cast<std::int32_t>((j + 1) % count))}));
  }
  const Trace trace = unused_constants(count);
  return told(trace, plan(trace, machine(100), {}, commands));
}

/// A chain of releases, each of which waits for the next one of the iteration before: the first knows only what had
/// ended so many iterations before.
std::string said_of_chain(std::uint32_t links, Before before) {
  std::vector<Command> commands;
  for (std::uint32_t j = 0; j < links; ++j) {
    const Wait wait = j + 1 < links ? previous_cmd(static_cast<std::int32_t>(j + 1)) : op(-1);
    commands.push_back(release(j, {wait}, before));
  }
  const Trace trace = unused_constants(links);
  return told(trace, plan(trace, machine(100), {}, commands));
}

}  // namespace

TEST_CASE("rule 7: a circle is told once around, from one of its members back to it") {
  CHECK(said_of_circle(1) == "7: waits go in a circle: " + release_name(0) + " waits for " + release_name(0) + '\n');
  CHECK(said_of_circle(3) == "7: waits go in a circle: " + release_name(0) + " waits for " + release_name(1) +
                                 " waits for " + release_name(2) + " waits for " + release_name(0) + '\n');
}

TEST_CASE("rule 7: up to 8 members of a circle are told, and how many there are if that is not all") {
  std::string eight = "7: waits go in a circle: " + release_name(0);
  for (std::uint32_t j = 1; j < 8; ++j) eight += " waits for " + release_name(j);
  CHECK(said_of_circle(8) == eight + " waits for " + release_name(0) + '\n');
  CHECK(said_of_circle(9) == eight + " ... (9 in all) waits for " + release_name(0) + '\n');
}

TEST_CASE("rule 6: waits that reach back through 63 iterations are followed; through more, the plan is refused") {
  std::string each;
  for (std::uint32_t j = 0; j < 63; ++j) {
    each += "5: " + release_name(j) + " releases a tensor that is not on the device\n";
  }
  const std::string refused =
      "6: commands: what comes first cannot be told: allocates and releases wait for one another back through too "
      "many iterations\n";
  CHECK(said_of_chain(63, {}) == each);
  CHECK(said_of_chain(64, {}) == refused);
  // Nor does it help that an operation waits for all of them.
  CHECK(said_of_chain(63, 0) == each);
  CHECK(said_of_chain(64, 0) == refused);
}

TEST_CASE("copies of constants back to the host may go without any wait") {
  Trace trace = unused_constants(3);
  trace.operations[0] = operation("reads all", 10, {0, 1, 2});
  CHECK(told(trace, plan(trace, machine(100), {resident(0, 0, true), resident(1, 10, true), resident(2, 20, true)},
                         {swap_out(0, {}), swap_out(1, {}), swap_out(2, {})})) == "");
}
