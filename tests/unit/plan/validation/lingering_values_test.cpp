// SPDX-License-Identifier: Apache-2.0
// Values that linger: what a trace may say of them, how long they count as live, and what plans must do for them.

#include <doctest/doctest.h>

#include <cstdint>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/formats/trace_json.hpp>
#include <swapmm/ir/liveness.hpp>
#include <swapmm/plan/planners.hpp>
#include <swapmm/plan/validate.hpp>

#include "support/plan_text.hpp"
#include "support/told.hpp"

using namespace swapmm;
using namespace swapmm::test;

namespace {

LingeringValue lingering(std::uint32_t tensor, std::uint32_t last_use, std::uint32_t until) {
  return {TensorId{tensor}, OperationId{last_use}, until};
}

/// Operation 0 writes x, 1 reads it, and 2 to 4 do without; so x is dead from 1 on, and its last value lingers.
Trace x_lingers(std::uint32_t until) {
  Trace trace;
  trace.tensors = {tensor("x", 100, TensorKind::transient)};
  trace.operations = {operation("writes", 10, {}, {0}), operation("reads", 10, {0}), operation("a", 10, {}),
                      operation("b", 10, {}), operation("c", 10, {})};
  trace.lingering = {lingering(0, 1, until)};
  return trace;
}

std::string problem_of(const Trace& trace) {
  const Check check = check_trace(trace);
  return check ? std::string() : check.problem().message;
}

std::string told_of(const Trace& trace, std::vector<Resident> initial, std::vector<Command> commands) {
  return told(trace, plan(trace, machine(100), std::move(initial), std::move(commands)));
}

}  // namespace

TEST_CASE("lingering values have rules of their own") {
  CHECK(problem_of(x_lingers(2)) == "");
  CHECK(problem_of(x_lingers(5)) == "");  // the operation that overwrites it, in the next iteration
  CHECK(problem_of(x_lingers(1)) == "lingering[0].until: 1 is not above 1 and at most 5");
  CHECK(problem_of(x_lingers(6)) == "lingering[0].until: 6 is not above 1 and at most 5");
  Trace trace = x_lingers(3);
  trace.lingering[0].last_use = OperationId{2};
  CHECK(problem_of(trace) == "lingering[0].last_use: operation 2 does not use it");
  trace.lingering[0].last_use = OperationId{0};
  CHECK(problem_of(trace) == "lingering[0]: operation 1 needs the value");
  trace = x_lingers(3);
  trace.lingering[0].tensor = TensorId{7};
  CHECK(problem_of(trace) == "lingering[0].tensor: 7 is not the id of one of the 1 tensors");
  trace = x_lingers(3);
  trace.lingering.push_back(trace.lingering[0]);
  CHECK(problem_of(trace) == "lingering[1]: values do not ascend by tensor and last use");
  trace = x_lingers(3);
  trace.host_reads = {{TensorId{0}, OperationId{0}}};
  CHECK(problem_of(trace) == "lingering[0]: tensor 0 is an input, or read by the host");
  trace = x_lingers(3);
  trace.operations[2].in_pieces = true;
  CHECK(problem_of(trace) == "lingering: only version 1 of the format has it");
}

TEST_CASE("lingering values are written and read, and do not change what program a trace is of") {
  const Trace trace = x_lingers(4);
  std::ostringstream text;
  write_trace(text, trace);
  CHECK(text.str().find("\"lingering\": [\n  {\"tensor\": 0, \"last_use\": 1, \"until\": 4}]") != std::string::npos);
  const Result<Trace> read = read_trace(text.str());
  REQUIRE(read);
  CHECK(*read == trace);
  Trace without = trace;
  without.lingering.clear();
  CHECK(digest(trace) == digest(without));
}

TEST_CASE("a value counts as live while it lingers") {
  const auto live = [](const Trace& trace) {
    std::vector<std::uint64_t> bytes;
    for (const Bytes each : analyze_liveness(trace, Bytes{1}).live) bytes.push_back(each.value);
    return bytes;
  };
  using Live = std::vector<std::uint64_t>;
  Trace never = x_lingers(2);
  never.lingering.clear();
  CHECK(live(never) == Live{100, 100, 0, 0, 0});
  CHECK(live(x_lingers(2)) == Live{100, 100, 100, 0, 0});
  CHECK(live(x_lingers(4)) == Live{100, 100, 100, 100, 100});
  CHECK(live(x_lingers(5)) == Live{100, 100, 100, 100, 100});  // the write counts it once
  Trace later = x_lingers(2);                                  // operation 1 writes now, 2 reads, and 0 does without
  later.operations = {operation("c", 10, {}), operation("writes", 10, {}, {0}), operation("reads", 10, {0}),
                      operation("a", 10, {})};
  later.lingering = {lingering(0, 2, 4)};
  CHECK(live(later) == Live{100, 100, 100, 100});
  later.lingering = {lingering(0, 2, 3)};
  CHECK(live(later) == Live{0, 100, 100, 100});
  CHECK(tensors_live_at(later, analyze_liveness(later, Bytes{1}), OperationId{3}).size() == 1);
  CHECK(tensors_live_at(later, analyze_liveness(later, Bytes{1}), OperationId{0}).empty());
}

TEST_CASE("a plan may not drop a value that lingers, unless the host has it") {
  const std::string dropped =
      "4: command 1 (release of tensor 0 \"x\") drops a value that is needed again: the host copy is not valid\n";
  const auto released_after = [](std::int32_t operation) {
    return std::vector<Command>{allocate(0, 0, {previous_cmd(1)}, 0), release(0, {op(operation)})};
  };
  CHECK(told_of(x_lingers(3), {}, released_after(1)) == dropped);
  CHECK(told_of(x_lingers(3), {}, released_after(2)) == dropped);
  CHECK(told_of(x_lingers(3), {}, released_after(3)) == "");
  CHECK(told_of(x_lingers(4), {}, released_after(4)) == "");
  CHECK(told_of(x_lingers(5), {}, released_after(4)) == dropped);
  // Saved: it goes as soon as it was copied, and never returns.
  CHECK(told_of(x_lingers(5), {},
                {allocate(0, 0, {previous_cmd(2)}, 0), swap_out(0, {op(0)}), release(0, {op(1), cmd(1)})}) == "");
  // Never away: it is overwritten where it is.
  CHECK(told_of(x_lingers(5), {resident(0, 0, false)}, {}) == "");
  // A value that lingers into the next iteration is on the device there.
  Trace next = x_lingers(5);
  next.operations = {operation("a", 10, {}), operation("b", 10, {}), operation("writes", 10, {}, {0}),
                     operation("reads", 10, {0})};
  next.lingering = {lingering(0, 3, 5)};
  const std::vector<Command> in_time = {release(0, {op(1)}), allocate(0, 0, {cmd(0)}, 2)};
  CHECK(told_of(next, {resident(0, 0, false)}, in_time) == "");
  next.lingering = {lingering(0, 3, 6)};
  CHECK(told_of(next, {resident(0, 0, false)}, in_time) ==
        "4: command 0 (release of tensor 0 \"x\") drops a value that is needed again: the host copy is not valid\n");
}

TEST_CASE("of two values that may go, the best plan keeps the one that would have to be saved") {
  // Both x and the constant lie idle in the middle, where there is room for one of them. The constant costs a copy to
  // the device; so does x a copy to the host, but only if it lingers so long.
  Trace trace;
  trace.tensors = {tensor("constant", 40, TensorKind::persistent), tensor("x", 60, TensorKind::transient),
                   tensor("large", 100, TensorKind::transient), tensor("y", 60, TensorKind::transient)};
  trace.operations = {operation("x", 1000, {}, {1}),    operation("y", 1000, {1}, {3}),
                      operation("of y", 1000, {3}),     operation("large", 1000, {}, {2}),
                      operation("of large", 1000, {2}), operation("of the constant", 1000, {0})};
  const auto bytes = [&](std::vector<LingeringValue> values) {
    Trace with = trace;
    with.lingering = std::move(values);
    const Result<Plan> made = make_plan("best", with, machine(160), {});
    REQUIRE(made);
    CHECK(validate(with, *made).empty());
    return std::pair(made->predicted.h2d.value, made->predicted.d2h.value);
  };
  using Moved = std::pair<std::uint64_t, std::uint64_t>;
  CHECK(bytes({}) == Moved{0, 0});
  CHECK(bytes({lingering(1, 1, 2)}) == Moved{0, 0});
  CHECK(bytes({lingering(1, 1, 3)}) == Moved{40, 0});  // beside `large` there is room for x, or the constant
  const Moved both = bytes({lingering(1, 1, 6), lingering(3, 2, 7)});  // now for one of x and y at most
  CHECK(both.second >= 60);
  CHECK(both.second % 60 == 0);
}

TEST_CASE("planners that do not know values that linger say so") {
  const Trace trace = x_lingers(3);
  for (const NamedPlanner& planner : planners()) {
    CAPTURE(planner.name);
    const Result<Plan> made = planner.make(trace, machine(100), {});
    REQUIRE(made);
    CHECK(validate(trace, *made).empty());
  }
}
