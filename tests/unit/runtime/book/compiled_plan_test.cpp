// SPDX-License-Identifier: Apache-2.0
// A plan made flat: where each command is issued, and which points of the queues it waits for.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/runtime/book/compiled_plan.hpp>

#include "support/update_program.hpp"

namespace {

using namespace swapmm;
using namespace swapmm::runtime;
using test::updates_of;

constexpr std::size_t compute = index(QueueKind::compute);
constexpr std::size_t h2d = index(QueueKind::h2d);
constexpr std::size_t d2h = index(QueueKind::d2h);

Command command(CommandKind kind, std::uint32_t tensor, std::vector<Wait> after, Bytes offset = {}) {
  Command command;
  command.kind = kind;
  command.tensor = id_at<TensorId>(tensor);
  command.after = std::move(after);
  command.offset = offset;
  return command;
}
Command before(Command command, std::uint32_t operation) {
  command.before_operation = operation;
  return command;
}
Wait op(std::uint32_t i) { return after_operation(id_at<OperationId>(i)); }
Wait cmd(std::uint32_t i) { return after_command(id_at<CommandId>(i)); }

Plan plan_of(std::vector<Command> commands) {
  Plan plan;
  plan.commands = std::move(commands);
  return plan;
}
CompiledPlan compiled(Program program, Plan plan) {
  Result<CompiledPlan> result = compile(std::move(program), std::move(plan));
  if (!result) FAIL(result.problem().message);
  return *std::move(result);
}
std::string refusal(Program program, Plan plan) {
  const Result<CompiledPlan> result = compile(std::move(program), std::move(plan));
  return result ? std::string() : result.problem().message;
}
/// The slot in which the step at `position` is issued.
std::size_t slot_of(const CompiledPlan& plan, std::size_t position) {
  const auto next = std::upper_bound(plan.first_step.begin(), plan.first_step.end(), position);
  return static_cast<std::size_t>(next - plan.first_step.begin()) - 1;
}

constexpr CommandKind swap_in = CommandKind::swap_in;
constexpr CommandKind swap_out = CommandKind::swap_out;
constexpr CommandKind release = CommandKind::release;
constexpr CommandKind allocate = CommandKind::allocate;

}  // namespace

TEST_CASE("a command is issued just behind the last operation it waits for, and waits for that one's point") {
  const CompiledPlan plan = compiled(updates_of(4), plan_of({before(command(swap_in, 3, {op(0), op(1)}), 3)}));
  REQUIRE(plan.steps.size() == 1);
  CHECK(slot_of(plan, 0) == 2 * 1 + 1);
  // Operations 0, 1 and the last one are recorded; point 1 is behind operation 1.
  CHECK(plan.operations[0].recorded);
  CHECK(plan.operations[1].recorded);
  CHECK(!plan.operations[2].recorded);
  CHECK(plan.operations[3].recorded);
  CHECK(plan.points[compute] == 3);
  CHECK(plan.steps[0].needs.back[compute] == 0);
  CHECK(plan.steps[0].needs.ordinal[compute] == 1);
  // An operation without a point of its own has ended when the next point has.
  CHECK(plan.operations[2].ordinal == 2);
}

TEST_CASE("an operation waits for the copies that are to be ended before it, by their place on their queue") {
  const CompiledPlan plan = compiled(
      updates_of(4), plan_of({before(command(swap_in, 2, {op(0)}), 2), before(command(swap_in, 3, {op(0)}), 3)}));
  CHECK(plan.points[h2d] == 2);
  CHECK(plan.operations[1].needs.back[h2d] == -1);
  CHECK(plan.operations[2].needs.back[h2d] == 0);
  CHECK(plan.operations[2].needs.ordinal[h2d] == 0);
  CHECK(plan.operations[3].needs.ordinal[h2d] == 1);
}

TEST_CASE("what waits for the iteration before is issued at the start and reaches back by one") {
  const OperationId last = id_at<OperationId>(3);
  const CompiledPlan plan =
      compiled(updates_of(4), plan_of({command(swap_out, 3, {after_previous_operation(last, 4)}),
                                       command(swap_out, 2, {after_previous_command(id_at<CommandId>(0))})}));
  CHECK(slot_of(plan, 0) == 0);
  CHECK(plan.steps[0].needs.back[compute] == 1);
  CHECK(plan.steps[0].needs.ordinal[compute] == plan.operations[3].ordinal);
  CHECK(plan.steps[1].needs.back[d2h] == 1);
  CHECK(plan.steps[1].needs.ordinal[d2h] == 0);
}

TEST_CASE("a copy for an operation of the next iteration is awaited there") {
  const CompiledPlan plan = compiled(updates_of(4), plan_of({before(command(swap_in, 1, {op(3)}), 4 + 1)}));
  CHECK(slot_of(plan, 0) == 2 * 3 + 1);
  CHECK(plan.operations[1].needs.back[h2d] == 1);
  CHECK(plan.operations[1].needs.ordinal[h2d] == 0);
}

TEST_CASE("allocate and release stand for what they wait for") {
  const CompiledPlan plan =
      compiled(updates_of(4), plan_of({command(swap_out, 0, {op(0)}), command(release, 0, {cmd(0), op(1)}),
                                       command(allocate, 2, {cmd(1)}), before(command(swap_in, 3, {cmd(2)}), 3)}));
  REQUIRE(plan.steps.size() == 4);
  const Step& last = plan.steps[3];
  CHECK(last.kind == swap_in);
  CHECK(last.needs.back[compute] == 0);
  CHECK(last.needs.ordinal[compute] == plan.operations[1].ordinal);
  CHECK(last.needs.back[d2h] == 0);
  CHECK(last.needs.ordinal[d2h] == 0);
  CHECK(slot_of(plan, 3) == 2 * 1 + 1);
}

TEST_CASE("within a slot commands stand as their waits demand, and releases come first") {
  const CompiledPlan plan =
      compiled(updates_of(3), plan_of({before(command(swap_in, 2, {op(0), cmd(2)}), 2), command(allocate, 1, {op(0)}),
                                       command(release, 0, {op(0)})}));
  REQUIRE(plan.steps.size() == 3);
  CHECK(plan.steps[0].kind == release);
  CHECK(slot_of(plan, 2) == 1);
  const auto position = [&](CommandKind kind) {
    return std::find_if(plan.steps.begin(), plan.steps.end(), [&](const Step& step) { return step.kind == kind; });
  };
  CHECK(position(release) < position(swap_in));
}

TEST_CASE("a chain of allocates and releases ends in its latest point, in whatever order the list has them") {
  const CompiledPlan plan =
      compiled(updates_of(5), plan_of({command(release, 0, {op(0), cmd(1)}), command(allocate, 1, {op(1), cmd(2)}),
                                       command(release, 2, {op(3)}), before(command(swap_in, 4, {cmd(0)}), 4)}));
  REQUIRE(plan.steps.size() == 4);
  REQUIRE(plan.steps[3].kind == swap_in);
  CHECK(plan.steps[3].needs.back[compute] == 0);
  CHECK(plan.steps[3].needs.ordinal[compute] == plan.operations[3].ordinal);
  CHECK(plan.operations[4].needs.back[compute] == -1);
  CHECK(slot_of(plan, 3) == 2 * 3 + 1);
}

TEST_CASE("only operations that something waits for are recorded, and the last one") {
  const CompiledPlan plan =
      compiled(updates_of(4), plan_of({command(swap_out, 0, {op(0)}), command(release, 0, {cmd(0)}),
                                       before(command(swap_in, 3, {cmd(1)}), 3)}));
  std::vector<bool> recorded;
  for (const FollowedOperation& operation : plan.operations) recorded.push_back(operation.recorded);
  CHECK(recorded == std::vector<bool>{true, false, false, true});
  CHECK(plan.points[compute] == 2);
}

TEST_CASE("copies of one direction are issued in list order, also those that wait for nothing themselves") {
  const CompiledPlan plan =
      compiled(updates_of(4), plan_of({before(command(swap_in, 3, {op(1)}), 3), before(command(swap_in, 2, {}), 2)}));
  REQUIRE(plan.steps.size() == 2);
  CHECK(plan.steps[0].role == 3);
  CHECK(plan.steps[1].role == 2);
  CHECK(slot_of(plan, 1) == 2 * 1 + 1);
}

TEST_CASE("an input is brought in only once the host has given its value") {
  Program program = updates_of(4);
  program.roles[3].input = true;
  program.trace.tensors[3].kind = TensorKind::input;
  program.trace.tensors[3].available_from = 2;
  const CompiledPlan plan = compiled(std::move(program), plan_of({before(command(swap_in, 3, {op(0)}), 3)}));
  CHECK(slot_of(plan, 0) == 2 * 2);
}

TEST_CASE("a place for an input that is overwritten is taken without waiting for the value from the host") {
  Program program = updates_of(4);
  program.roles[3].input = true;
  program.trace.tensors[3].kind = TensorKind::input;
  program.trace.tensors[3].available_from = 2;
  std::swap(program.trace.operations[3].updates, program.trace.operations[3].writes);
  program.accesses[3].access = Access::write;
  const CompiledPlan plan = compiled(std::move(program), plan_of({before(command(allocate, 3, {op(0)}), 3)}));
  CHECK(slot_of(plan, 0) == 2 * 0 + 1);
}

TEST_CASE("with one copy engine each copy comes after the one before it, whatever its direction") {
  Plan half = plan_of({command(swap_out, 0, {op(0)}), before(command(swap_in, 3, {op(0)}), 3)});
  half.machine.duplex = Duplex::half;
  const CompiledPlan plan = compiled(updates_of(4), half);
  CHECK(plan.steps[1].needs.back[d2h] == 0);
  CHECK(plan.steps[1].needs.ordinal[d2h] == 0);
  CHECK(plan.steps[0].needs.back[h2d] == 1);  // the last copy of the iteration before
  half.machine.duplex = Duplex::full;
  CHECK(compiled(updates_of(4), half).steps[1].needs.back[d2h] == -1);
}

TEST_CASE("with one copy engine the first copy comes after the last copy of the iteration before") {
  Plan half = plan_of({command(swap_out, 0, {op(0)}), command(swap_out, 1, {op(1)}), command(release, 2, {op(2)})});
  half.machine.duplex = Duplex::half;
  const CompiledPlan plan = compiled(updates_of(4), half);
  REQUIRE(plan.steps[0].role == 0);
  CHECK(plan.steps[0].needs.back[d2h] == 1);
  CHECK(plan.steps[0].needs.ordinal[d2h] == 1);
  CHECK(plan.steps[0].needs.ordinal[compute] == plan.operations[0].ordinal);
}

TEST_CASE("needs keep the latest point of each queue, and none further back than is kept") {
  Needs needs;
  needs.add(QueueKind::h2d, 1, 5);
  needs.add(QueueKind::h2d, 2, 9);
  CHECK(needs.back[h2d] == 1);
  needs.add(QueueKind::h2d, 1, 7);
  CHECK(needs.ordinal[h2d] == 7);
  needs.add(QueueKind::h2d, 0, 2);
  CHECK(needs.back[h2d] == 0);
  CHECK(needs.ordinal[h2d] == 2);
  needs.add(QueueKind::compute, max_back, 5);
  CHECK(needs.back[compute] == max_back);
  CHECK(needs.ordinal[compute] == 5);
  needs.add(QueueKind::d2h, max_back + 4, 3);
  CHECK(needs.back[d2h] == max_back);
  Needs other;
  other.add(QueueKind::compute, 0, 1);
  other.join(needs);
  std::array<std::int8_t, device_queue_count> expected{0, 0, max_back};
  std::fill(expected.begin() + base_queue_count, expected.end(), std::int8_t{-1});
  CHECK(other.back == expected);
}

TEST_CASE("a compiled plan knows how high it reaches and which tensors need a place on the host") {
  Plan plan = plan_of({before(command(swap_in, 2, {op(0)}, Bytes{128}), 2), command(swap_out, 1, {op(1)})});
  plan.initial = {{id_at<TensorId>(0), Bytes{256}, false}};
  const CompiledPlan flat = compiled(updates_of(3), plan);
  CHECK(flat.footprint == Bytes{320});
  CHECK(flat.swapped_out == std::vector<bool>{false, true, false});
}

TEST_CASE("a plan reaches no higher because of an offset where nothing takes a place") {
  const Bytes far{1 << 20};
  const CompiledPlan plan = compiled(
      updates_of(3), plan_of({command(swap_out, 1, {op(1)}, far), command(release, 1, {cmd(0)}, far),
                              before(command(allocate, 2, {op(0)}, Bytes{64}), 2), command(release, 0, {op(0)})}));
  CHECK(plan.footprint == Bytes{128});
}

TEST_CASE("what the executor cannot follow is refused, with the place") {
  Program with_input = updates_of(3);
  with_input.roles[0].input = true;
  Plan resident;
  resident.initial = {{id_at<TensorId>(0), Bytes{0}, true}};
  CHECK(refusal(with_input, resident).find("initial: tensor 0 is an input") != std::string::npos);
  CHECK(refusal(with_input, plan_of({before(command(swap_in, 0, {op(2)}), 3)})).find("commands[0]") !=
        std::string::npos);
  CHECK(refusal(with_input, plan_of({before(command(swap_in, 0, {}), 0)})).empty());

  Program with_work_area = updates_of(3);
  with_work_area.roles[1].kind = Role::Kind::scratch;
  CHECK(refusal(with_work_area, plan_of({command(swap_out, 1, {op(1)})})).find("work area") != std::string::npos);
}

TEST_CASE("waits that go in a circle are refused") {
  CHECK(refusal(updates_of(3), plan_of({command(release, 0, {cmd(1)}), command(allocate, 1, {cmd(0)}),
                                        before(command(swap_in, 2, {op(0)}), 2)})) == "waits go in a circle");
}

TEST_CASE("two values of one tensor are never on the device together") {
  Program program = updates_of(3);
  program.roles[2].serial = program.roles[0].serial;
  program.roles[2].record = program.roles[0].record;
  Plan plan = plan_of({before(command(swap_in, 2, {op(0)}), 2)});
  plan.initial = {{id_at<TensorId>(0), Bytes{0}, true}};
  CHECK(refusal(program, plan).find("two values of tensor") != std::string::npos);
  plan.commands.push_back(command(release, 0, {op(0)}));
  plan.commands[0].after.push_back(cmd(1));
  CHECK(refusal(program, plan).empty());
}

TEST_CASE("a tensor that lives within the iteration is no value of a handle, whatever its serial number says") {
  Program program = updates_of(3);
  program.roles[0].kind = Role::Kind::local;
  program.roles[0].serial = program.roles[2].serial;
  Plan plan = plan_of({before(command(swap_in, 2, {op(0)}), 2)});
  plan.initial = {{id_at<TensorId>(0), Bytes{0}, true}};
  CHECK(refusal(program, plan).empty());
}
