// SPDX-License-Identifier: Apache-2.0
// Replays that are written out in a program, and the releases of a plan for it whose values replays give back.
#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

#include <swapmm/plan/step_times.hpp>
#include <swapmm/runtime/book/compiled_plan.hpp>
#include <swapmm/runtime/observe/replayed_program.hpp>

#include "support/executor_desk.hpp"

namespace swapmm::test::replayed_program_test {
using runtime::Event;

/// "make" writes a, "other" b; "use" reads a, and "last" b and a; "more" writes b once more.
runtime::Program program() {
  WrittenProgram written;
  written.local("a").local("b");
  written.operation("make", {{0, Access::write}}).operation("other", {{1, Access::write}});
  written.operation("use", {{0, Access::read}}).operation("last", {{1, Access::read}, {0, Access::read}});
  written.operation("more", {{1, Access::write}}).end();
  runtime::Program made = written.program();
  made.trace.operations[0].writes = {TensorId{0}};
  made.trace.operations[1].writes = {TensorId{1}};
  made.trace.operations[2].reads = {TensorId{0}};
  made.trace.operations[3].reads = {TensorId{1}, TensorId{0}};
  made.trace.operations[4].writes = {TensorId{1}};
  made.replayable = {true, false, false, false, false};
  made.waits = {{1, 0}, {2, 0}, {3, 0}, {4, 0}, {5, 0}};
  made.trace.lingering = {{TensorId{1}, OperationId{3}, 4}};
  return made;
}

TEST_CASE("replays are events and operations of their own, counted for each operation; waits count what was observed") {
  const std::vector<Replay> replays = {{OperationId{0}, OperationId{2}}, {OperationId{0}, OperationId{3}}};
  const Result<runtime::Program> made = runtime::with_replays(program(), replays);
  REQUIRE(made);
  std::vector<Event::What> events;
  std::vector<std::uint32_t> indices;
  for (const Event& event : made->events) events.push_back(event.what), indices.push_back(event.index);
  constexpr auto operation = Event::What::operation;
  constexpr auto replay = Event::What::replay;
  CHECK(events == std::vector{operation, operation, replay, operation, replay, operation, operation,
                              Event::What::end_of_iteration});
  CHECK(indices == std::vector<std::uint32_t>{0, 1, 2, 3, 4, 5, 6, 0});
  CHECK(made->replays.runs == std::vector<std::uint32_t>{0, 1, 0, 2, 0, 3, 4});
  CHECK(made->replays.is_replay == std::vector<bool>{false, false, true, false, true, false, false});
  CHECK(made->replays.times == std::vector<std::uint32_t>{2, 0, 0, 0, 0});
  REQUIRE(made->waits.size() == 5);
  CHECK(made->waits.back().calls == 5);
  CHECK(made->trace.lingering == std::vector<LingeringValue>{{TensorId{1}, OperationId{5}, 6}});
}

TEST_CASE("a release says whether a replay gives the value back") {
  const Result<runtime::Program> made =
      runtime::with_replays(program(), std::vector<Replay>{{OperationId{0}, OperationId{2}}});
  REQUIRE(made);  // make, other, make again, use, last, more
  Plan plan;
  plan.machine.device_budget = Bytes{256};
  plan.commands = {written_command(CommandKind::allocate, 0, Bytes{0}, {}),
                   written_command(CommandKind::release, 0, Bytes{0}, {after_op(0)}),
                   written_command(CommandKind::allocate, 1, Bytes{64}, {after_op(0)}),
                   written_command(CommandKind::allocate, 0, Bytes{0}, {after_op(1)}),
                   written_command(CommandKind::release, 0, Bytes{0}, {after_op(4)}),
                   written_command(CommandKind::release, 1, Bytes{64}, {after_op(4)})};
  const Result<runtime::CompiledPlan> compiled = runtime::compile(*made, plan);
  REQUIRE(compiled);
  std::vector<bool> made_again;
  for (const runtime::Step& step : compiled->steps) {
    if (step.kind == CommandKind::release) made_again.push_back(step.made_again);
  }
  CHECK(made_again == std::vector<bool>{true, false, false});
}

}  // namespace swapmm::test::replayed_program_test
