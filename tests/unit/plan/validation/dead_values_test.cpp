// SPDX-License-Identifier: Apache-2.0
// Which values are alive: what of them may be copied, dropped or written over, and what is said of plans that err.

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "support/plan_text.hpp"
#include "support/told.hpp"

using namespace swapmm;
using namespace swapmm::test;

namespace {

Trace program_of_x(TensorKind kind, std::vector<TraceOperation> operations,
                   std::vector<std::uint32_t> host_reads_after) {
  Trace trace;
  trace.tensors = {tensor("x", 100, kind)};
  trace.operations = std::move(operations);
  for (const std::uint32_t i : host_reads_after) trace.host_reads.push_back({TensorId{0}, OperationId{i}});
  return trace;
}

TraceOperation leaves_x() { return operation("nothing", 10, {}); }
TraceOperation reads_x() { return operation("reads", 10, {0}); }
TraceOperation writes_x() { return operation("writes", 10, {}, {0}); }

std::string said_of_x(const Trace& trace, std::vector<Resident> initial, std::vector<Command> commands) {
  return told(trace, plan(trace, machine(100), std::move(initial), std::move(commands)));
}

}  // namespace

TEST_CASE("rule 4: a copy of a dead value that was there at the start is told beside the plan's other faults") {
  const std::string expected =
      "4: command 0 (swap_out of tensor 0 \"x\") copies a dead value: the device copy holds nothing valid\n"
      "5: tensor 0 \"x\" has a valid host copy in initial, but not at the end of an iteration\n";
  const std::vector<Resident> there = {resident(0, 0, true)};
  // Written in each iteration.
  CHECK(said_of_x(program_of_x(TensorKind::transient, {writes_x()}, {}), there, {swap_out(0, {op(-1)}, 0)}) ==
        expected);
  // The host reads an earlier value of the iteration, not the last one.
  CHECK(said_of_x(program_of_x(TensorKind::transient, {writes_x(), writes_x()}, {0}), there,
                  {swap_out(0, {op(-1)}, 0), swap_out(0, {op(0)}, 1)}) == expected);
  // Never written.
  CHECK(said_of_x(program_of_x(TensorKind::transient, {leaves_x()}, {}), there, {swap_out(0, {op(-1)})}) == expected);
}

TEST_CASE("rule 4: a swap_out of a tensor that is not on the device makes no host copy") {
  CHECK(said_of_x(program_of_x(TensorKind::persistent, {writes_x()}, {}), {},
                  {swap_out(0, {op(-1), previous_cmd(3)}), swap_in(0, 0, {cmd(0)}, 0), swap_out(0, {op(0)}),
                   release(0, {cmd(2)})}) ==
        "4: command 0 (swap_out of tensor 0 \"x\") copies a tensor that is not on the device\n"
        "4: command 1 (swap_in of tensor 0 \"x\") finds no valid host copy\n");
}

TEST_CASE("rule 3: the host's reads do not count as the next access of a tensor that is allocated") {
  CHECK(said_of_x(program_of_x(TensorKind::persistent, {reads_x(), leaves_x(), writes_x()}, {1}), {},
                  {swap_in(0, 0, {previous_cmd(4)}, 0), release(0, {op(0)}), allocate(0, 0, {cmd(1)}, 2),
                   swap_out(0, {op(2)}), release(0, {cmd(3)})}) == "");
}

TEST_CASE("rule 3: an input whose given value no operation reads may be allocated before it is given") {
  CHECK(said_of_x(program_of_x(TensorKind::input, {writes_x(), leaves_x()}, {}), {resident(0, 0, false)},
                  {release(0, {op(0)}), allocate(0, 0, {cmd(0)}, 2)}) == "");
}

TEST_CASE("rule 3: a tensor that no operation accesses is not allocated") {
  CHECK(said_of_x(program_of_x(TensorKind::transient, {leaves_x()}, {}), {},
                  {allocate(0, 0, {op(-1)}), release(0, {op(0)})}) ==
        "3: command 0 (allocate of tensor 0 \"x\") is for a tensor whose next access is not in writes\n");
}

TEST_CASE("rule 4: a second allocate drops the value that the host reads") {
  CHECK(said_of_x(
            program_of_x(TensorKind::transient, {writes_x(), leaves_x(), writes_x()}, {1}), {},
            {allocate(0, 0, {op(-1), previous_cmd(2)}, 0), allocate(0, 0, {op(0), cmd(0)}, 2), release(0, {op(2)})}) ==
        "5: command 1 (allocate of tensor 0 \"x\") takes a place while the tensor is on the device already\n"
        "4: the host reads tensor 0 \"x\" after operation 1 \"nothing\", but no copy holds that value any more\n");
}

TEST_CASE("rule 4: the host may read a value as often as it likes") {
  const Trace often = program_of_x(TensorKind::transient, {writes_x()}, std::vector<std::uint32_t>(1000, 0));
  CHECK(said_of_x(often, {}, {allocate(0, 0, {previous_cmd(2)}, 0), swap_out(0, {op(0)}), release(0, {cmd(1)})}) == "");
  CHECK(said_of_x(often, {}, {allocate(0, 0, {previous_cmd(1)}, 0), release(0, {op(0)})}) ==
        "4: command 1 (release of tensor 0 \"x\") drops a value that the host reads before a swap_out of it\n");
}
