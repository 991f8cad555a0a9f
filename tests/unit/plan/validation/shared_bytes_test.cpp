// SPDX-License-Identifier: Apache-2.0
// Places at the limits of what is allowed: empty ones, full ones, ones within others, and ones taken for an instant.

#include <doctest/doctest.h>

#include <cstdint>
#include <string>

#include "support/plan_text.hpp"
#include "support/told.hpp"

using namespace swapmm;
using namespace swapmm::test;

namespace {

/// Constants of 100, 20 and 10 bytes, which three operations use in turn.
Trace three_sizes() {
  Trace trace;
  trace.tensors = {tensor("large", 100, TensorKind::persistent), tensor("middle", 20, TensorKind::persistent),
                   tensor("small", 10, TensorKind::persistent)};
  trace.operations = {operation("use large", 10, {0}), operation("use middle", 10, {1}),
                      operation("use small", 10, {2})};
  return trace;
}

/// Each comes for its operation and goes after it: the middle one into the middle of the large one's place, and the
/// small one to where the middle one begins, after `wait`.
std::string nested_places(const Wait& wait) {
  const Trace trace = three_sizes();
  return told(trace, plan(trace, machine(100), {},
                          {swap_in(0, 0, {previous_cmd(5)}, 0), release(0, {op(0)}), swap_in(1, 40, {cmd(1)}, 1),
                           release(1, {op(1)}), swap_in(2, 40, {wait}, 2), release(2, {op(2)})}));
}

}  // namespace

TEST_CASE("rule 3: a tensor without bytes may be anywhere up to the end of the budget, within another one too") {
  Trace trace;
  trace.tensors = {tensor("weights", 100, TensorKind::persistent), tensor("nothing", 0, TensorKind::persistent)};
  trace.operations = {operation("use both", 10, {0, 1})};
  Machine arenas = machine(100);
  arenas.max_allocation = Bytes{100};
  const auto at = [&](std::uint64_t offset) {
    return told(trace, plan(trace, arenas, {resident(0, 0, true), resident(1, offset, true)}, {}));
  };
  for (const std::uint64_t offset : {0U, 50U, 99U, 100U}) CHECK(at(offset) == "");
  CHECK(at(101) ==
        "3: initial: tensor 1 \"nothing\" at offset 101 with 0 bytes leaves the device budget of 100 bytes\n");
}

TEST_CASE("rule 3: a tensor may fill an arena to its last byte") {
  Trace trace;
  trace.tensors = {tensor("weights", 100, TensorKind::persistent)};
  trace.operations = {operation("use", 10, {0})};
  Machine arenas = machine(300);
  arenas.max_allocation = Bytes{100};
  const auto at = [&](std::uint64_t offset) {
    return told(trace, plan(trace, arenas, {resident(0, offset, true)}, {}));
  };
  CHECK(at(0) == "");
  CHECK(at(200) == "");
  for (const std::uint64_t offset : {1U, 99U, 101U}) {
    CHECK(at(offset) == "3: initial: tensor 0 \"weights\" at offset " + std::to_string(offset) +
                            " with 100 bytes crosses a multiple of max_allocation_bytes, 100\n");
  }
}

TEST_CASE("rule 3: a tensor that does not fit is told where it comes, not where it is copied back or leaves") {
  Trace trace;
  trace.tensors = {tensor("large", 100, TensorKind::persistent)};
  trace.operations = {operation("update", 10, {}, {}, {0})};
  CHECK(told(trace, plan(trace, machine(60), {},
                         {swap_in(0, 0, {previous_cmd(2)}, 0), swap_out(0, {op(0)}), release(0, {cmd(1)})})) ==
        "3: command 0 (swap_in of tensor 0 \"large\") at offset 0 with 100 bytes leaves the device budget of 60 "
        "bytes\n");
}

TEST_CASE("rule 6: a place that is given up in the instant in which it is taken was never taken") {
  Trace trace;
  trace.tensors = {tensor("kept", 100, TensorKind::persistent), tensor("made", 100, TensorKind::transient)};
  trace.operations = {operation("use", 10, {0}), operation("make", 10, {}, {1})};
  const auto released = [&](const Wait& wait) {
    return told(trace, plan(trace, machine(200), {resident(0, 0, true)},
                            {allocate(1, 0, {op(0)}), release(1, {cmd(0), wait}), allocate(1, 100, {cmd(1)}, 1),
                             release(1, {op(1)})}));
  };
  CHECK(released(op(0)) == "");
  // The same between two instants.
  trace.operations.insert(trace.operations.begin() + 1, operation("between", 10, {}));
  CHECK(told(trace, plan(trace, machine(200), {resident(0, 0, true)},
                         {allocate(1, 0, {op(0)}), release(1, {cmd(0), op(1)}), allocate(1, 100, {cmd(1)}, 2),
                          release(1, {op(2)})})) ==
        "3: command 0 (allocate of tensor 1 \"made\") takes [0, 100), which tensor 0 \"kept\" never leaves\n");
}

TEST_CASE("rule 6: one tensor may come in the instant in which another one leaves") {
  Trace trace;
  trace.tensors = {tensor("made", 100, TensorKind::transient), tensor("constant", 100, TensorKind::persistent)};
  trace.operations = {operation("make", 10, {}, {0}), operation("use", 10, {1})};
  // Both are there at the end of an iteration: the first comes back for the next one just when the second leaves.
  CHECK(told(trace, plan(trace, machine(200), {resident(0, 0, false), resident(1, 100, true)},
                         {release(0, {op(0)}), allocate(0, 0, {op(1)}, 2), release(1, {op(1)}),
                          swap_in(1, 100, {cmd(2)}, 3)})) == "");
}

TEST_CASE("rule 6: bytes in the middle of a place belong to who had them last") {
  CHECK(nested_places(cmd(3)) == "");
  CHECK(nested_places(cmd(1)) ==
        "6: command 4 (swap_in of tensor 2 \"small\") takes [40, 50) and does not wait for command 3 (release of "
        "tensor 1 \"middle\"), which leaves these bytes\n");
}
