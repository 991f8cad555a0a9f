// SPDX-License-Identifier: Apache-2.0
// What the validator of version 2 says, and what it refuses at the edges. Other programs compare rules alone.
#include <doctest/doctest.h>

#include "support/v2/by_hand.hpp"

namespace swapmm::v2::validator_test {
using namespace swapmm::v2::hand;

TEST_CASE("v2, rule 6: a release that waits for who takes its bytes leaves them too late, even in the same instant") {
  Trace trace;
  trace.tensors = {tensor("a", 10, TensorKind::transient), tensor("b", 10, TensorKind::transient)};
  trace.operations = {operation("first", 10, {}, {0}), operation("second", 10, {}, {1})};
  const auto with = [&](Waits of_release, Waits of_taking) {
    return plan_of(trace, device(10), {},
                   {take(0, 0, {op(-1)}, {0}), give_back(0, std::move(of_release)),
                    take(1, 0, std::move(of_taking), {1}), give_back(1, {op(1)})});
  };
  CHECK(told(trace, with({op(0)}, {op(0)})).empty());  // one instant: what leaves goes first
  CHECK(told(trace, with({op(0)}, {cmd(1)})).empty());
  CHECK(told(trace, with({op(0), cmd(2)}, {op(0)})) ==
        "6: command 2 (allocate of tensor 1 \"b\") takes bytes and does not wait for command 1 (release of tensor 0 "
        "\"a\"), which leaves them\n");
}

TEST_CASE("v2, rule 4: whether a place holds nothing, the value before or one of long ago is told") {
  Trace trace;
  trace.tensors = {tensor("w", 10, TensorKind::persistent)};
  trace.operations = {operation("a", 10, {}, {}, {0}), operation("b", 10, {0})};
  const auto first = [&](std::vector<Command> commands) {
    const auto violations = v2::validate(trace, plan_of(trace, device(100), {place(0, 0)}, std::move(commands)));
    return violations.empty() ? std::string() : std::to_string(violations[0].rule) + ": " + violations[0].message;
  };
  const std::string needs =
      "4: operation 1 \"b\" needs the current value of tensor 0 \"w\" in gpu, but the place holds ";
  CHECK(first({give_back(0, {op(0)}), copy(0, 0, {cmd(0)}, {1}, Bytes{0})}) == needs + "an older one");
  CHECK(first({give_back(0, {op(0)}), take(0, 0, {cmd(0)}, {1})}) == needs + "nothing");
}

TEST_CASE("v2, rule 7: a circle is told once around, with each of its members") {
  const Trace trace = unused_constants(2);
  const auto said = [&](Waits of_first, Waits of_second) {
    return told(trace,
                plan_of(trace, device(100), {}, {take(0, 0, std::move(of_first)), take(1, 10, std::move(of_second))}));
  };
  CHECK(said({cmd(0)}, {}) ==
        "7: waits go in a circle: command 0 (allocate of tensor 0) waits for command 0 (allocate of "
        "tensor 0)\n");
  CHECK(
      said({cmd(1)}, {cmd(0)}) ==
      "7: waits go in a circle: command 0 (allocate of tensor 0) waits for command 1 (allocate of tensor 1) waits for "
      "command 0 (allocate of tensor 0)\n");
}

TEST_CASE("v2, rule 0: the last piece has at least a byte, and no operation of the iteration before has a flag") {
  const Trace trace = unused_constants(1);  // 10 bytes
  const auto divided = [&](std::uint64_t at) {
    Plan plan = plan_of(trace, device(100), {}, {});
    plan.pieces = {{TensorId{0}, {Bytes{4}, Bytes{at}}}};
    return told(trace, plan);
  };
  CHECK(divided(9) == "");
  CHECK(divided(10) == "0: pieces[0].at: 10 is not within tensor 0\n");
  CHECK(divided(11) == "0: pieces[0].at: 11 is not within tensor 0\n");
  const auto waiting = [&](Wait wait) {
    return told(trace, plan_of(trace, device(100), {place(0, 0)}, {copy(0, 1, {wait})}));
  };
  CHECK(waiting(op(0)) == "");
  CHECK(waiting(op(-1)) == "");
  CHECK(waiting({Wait::On::operation, true, 0}) ==
        "0: commands[0].after[0]: 0 is not one of the 1 operations or those before\n");
  CHECK(waiting(op(1)) == "0: commands[0].after[0]: 1 is not one of the 1 operations or those before\n");
  CHECK(waiting(op(-2)) == "0: commands[0].after[0]: -2 is not one of the 1 operations or those before\n");
}

TEST_CASE("v2, rule 0: operations of this iteration and of the next one may wait for a command, and no later ones") {
  const Trace trace = unused_constants(1);
  const auto with = [&](std::uint32_t before) {
    return told(trace, plan_of(trace, device(100), {place(0, 0)}, {copy(0, 1, {op(-1)}, {before})}));
  };
  CHECK(with(0) == "");
  CHECK(with(1) == "");
  CHECK(with(2) == "0: commands[0].before_operation: 2 is not below 2n = 2\n");
}

}  // namespace swapmm::v2::validator_test
