// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include <swapmm/plan/validate.hpp>

#include "support/plan_text.hpp"
#include "support/told.hpp"

using namespace swapmm;
using namespace swapmm::test;

namespace {

constexpr std::uint32_t weights = 0;
constexpr std::uint32_t images = 1;
constexpr std::uint32_t hidden = 2;
constexpr std::uint32_t state = 3;

/// A small training step: one tensor of each kind, and one that must come and go.
Trace training() {
  Trace trace;
  trace.tensors = {tensor("weights", 100, TensorKind::persistent), tensor("images", 50, TensorKind::input),
                   tensor("hidden", 80, TensorKind::transient), tensor("state", 50, TensorKind::persistent)};
  trace.operations = {operation("forward", 10, {weights, images}, {hidden}), operation("middle", 10, {}, {}, {state}),
                      operation("backward", 10, {hidden}, {}, {weights})};
  return trace;
}

/// Weights stay; images and state take turns at [100, 150). That the swap_in of state comes after its own release is
/// nowhere said: it follows from command 2, operation 0 and command 0.
Plan training_plan(const Trace& trace) {
  return plan(trace, machine(240, 10), {resident(weights, 0, false)},
              {swap_in(images, 100, {op(-1), previous_cmd(5)}, 0), allocate(hidden, 150, {previous_cmd(6)}, 0),
               release(images, {op(0)}), swap_in(state, 100, {cmd(2)}, 1), swap_out(state, {op(1)}),
               release(state, {cmd(4)}), release(hidden, {op(2)})});
}

/// Two weights that are only read, one operation each.
Trace two_weights() {
  Trace trace;
  trace.tensors = {tensor("a", 100, TensorKind::persistent), tensor("b", 100, TensorKind::persistent)};
  trace.operations = {operation("use a", 10, {0}), operation("use b", 10, {1})};
  return trace;
}

void check_valid(const Trace& trace, const Plan& plan) { CHECK(told(trace, plan) == ""); }

/// All violations are of that rule, and one has these words.
void check_broken(const Trace& trace, const Plan& plan, int rule, const std::string& words) {
  CAPTURE(words);
  const std::string all = told(trace, plan);
  CHECK_MESSAGE(all.find(words) != std::string::npos, all);
  for (const Violation& violation : validate(trace, plan)) CHECK_MESSAGE(violation.rule == rule, all);
}

void check_broken(const Plan& plan, int rule, const std::string& words) { check_broken(training(), plan, rule, words); }

Plan training_plan() { return training_plan(training()); }

}  // namespace

TEST_CASE("a plan that orders all it must by any chain of waits is valid") { check_valid(training(), training_plan()); }

TEST_CASE("a plan that only keeps everything on the device is valid without a command") {
  const Trace trace = two_weights();
  check_valid(trace, plan(trace, machine(200), {resident(0, 0, true), resident(1, 100, false)}, {}));
}

TEST_CASE("two tensors may share an address, and a swap_in may serve the next iteration") {
  const Trace trace = two_weights();
  check_valid(trace,
              plan(trace, machine(100), {resident(0, 0, true)},
                   {release(0, {op(0)}), swap_in(1, 0, {cmd(0)}, 1), release(1, {op(1)}), swap_in(0, 0, {cmd(2)}, 2)}));
}

TEST_CASE("a swap_in for the next iteration closes only over initial") {
  const Trace trace = two_weights();
  const std::vector<Command> commands = {swap_in(1, 100, {previous_cmd(2)}, 1), release(0, {op(0)}),
                                         release(1, {op(1)}), swap_in(0, 0, {cmd(1)}, 2)};
  check_valid(trace, plan(trace, machine(200), {resident(0, 0, true)}, commands));
  check_broken(trace, plan(trace, machine(200), {}, commands), 6, "uses tensor 0 \"a\"");
}

TEST_CASE("a value may be written back as soon as it is final, while it is read") {
  Trace trace = two_weights();
  trace.operations = {operation("write a", 10, {}, {}, {0}), operation("read a", 10, {0}), operation("b", 10, {1})};
  check_valid(trace, plan(trace, machine(100), {},
                          {swap_in(0, 0, {previous_cmd(4)}, 0), swap_out(0, {op(0)}), release(0, {cmd(1), op(1)}),
                           swap_in(1, 0, {cmd(2)}, 2), release(1, {op(2)})}));
}

TEST_CASE("an allocate and a release of one instant need no wait between them") {
  Plan changed = training_plan();
  changed.commands[3].after = {op(0)};  // as does the release of images, whose place it takes
  check_valid(training(), changed);
}

TEST_CASE("an input may come right after the last operation of the iteration before, for the next one") {
  Plan changed = training_plan();
  changed.initial.push_back(resident(images, 100, true));
  changed.commands.erase(changed.commands.begin());
  changed.commands.push_back(swap_in(images, 100, {op(2), cmd(4)}, 3));
  changed.commands[0] = allocate(hidden, 150, {previous_cmd(5)}, 0);
  changed.commands[2].after = {cmd(1), previous_cmd(4)};
  changed.commands[4].after = {cmd(3)};
  check_valid(training(), changed);
}

TEST_CASE("an input that is available later may be swapped in once the operation in front has ended") {
  Trace trace;
  trace.tensors = {tensor("labels", 10, TensorKind::input, 2)};
  trace.operations = {operation("0", 10, {}), operation("1", 10, {}), operation("2", 10, {0})};
  const auto after = [&](Wait wait) {
    return plan(trace, machine(10), {}, {swap_in(0, 0, {wait, previous_cmd(1)}, 2), release(0, {op(2)})});
  };
  check_valid(trace, after(op(1)));
  check_broken(trace, after(op(0)), 4, "before the host gives the value, at the end of operation 1");
}

TEST_CASE("the host gets the last value of an input after the iteration") {
  Trace trace;
  trace.tensors = {tensor("batch", 10, TensorKind::input)};
  trace.operations = {operation("0", 10, {}, {}, {0})};
  trace.host_reads = {{TensorId{0}, OperationId{0}}};
  check_valid(trace, plan(trace, machine(10), {},
                          {swap_in(0, 0, {op(-1), previous_cmd(2)}, 0), swap_out(0, {op(0)}), release(0, {cmd(1)})}));
  check_broken(trace, plan(trace, machine(10), {}, {swap_in(0, 0, {op(-1), previous_cmd(1)}, 0), release(0, {op(0)})}),
               4, "that the host reads before a swap_out");
}

TEST_CASE("the host may get a value that died with the iteration under the next one, but only once") {
  Trace trace = training();
  trace.host_reads = {{TensorId{hidden}, OperationId{2}}};
  Plan later = training_plan();
  later.initial.push_back(resident(hidden, 150, false));
  later.commands[1].after = {cmd(6)};
  later.commands[4] = swap_out(hidden, {op(-1)});
  later.commands[6].after = {cmd(4)};
  later.commands.push_back(swap_out(state, {op(1)}));
  later.commands[5].after = {cmd(7)};
  check_valid(trace, later);
  // After a copy within the iteration another one has nothing to bring. In the first iteration this does not show.
  later.commands.push_back(swap_out(hidden, {op(2)}));
  later.commands[4].after.push_back(previous_cmd(8));
  check_broken(trace, later, 4, "command 4 (swap_out of tensor 2 \"hidden\") copies a dead value");
  // And without any the place is not given up.
  later.commands.pop_back();
  later.commands[4] = swap_out(weights, {op(-1)}, 2);
  later.commands[6].after = {op(-1)};
  check_broken(trace, later, 4, "command 6 (release of tensor 2 \"hidden\") drops a value that the host reads");
}

TEST_CASE("rule 0: a plan for another program or with indices out of range is refused") {
  Plan changed = training_plan();
  changed.trace_digest = "0123";
  check_broken(changed, 0, "the plan is for program \"0123\"");
  changed = training_plan();
  changed.machine.alignment = Bytes{0};
  check_broken(changed, 0, "machine: ");
  changed = training_plan();
  changed.commands[2].tensor = TensorId{4};
  check_broken(changed, 0, "commands[2].tensor: 4");
  changed = training_plan();
  changed.initial[0].tensor = TensorId{9};
  check_broken(changed, 0, "initial[0].tensor: 9");
  for (const Wait wait : {op(3), op(-4), cmd(7), cmd(-1), previous_cmd(7)}) {
    changed = training_plan();
    changed.commands[3].after.push_back(wait);
    check_broken(changed, 0, "commands[3].after[1]: " + std::to_string(wait.index));
  }
  changed = training_plan();
  changed.commands[0].before_operation = 6;
  check_broken(changed, 0, "commands[0].before_operation: 6");
}

TEST_CASE("rule 3: every place lies in the budget, aligned, in one arena") {
  Plan changed = training_plan();
  changed.commands[1].offset = Bytes{170};
  check_broken(changed, 3,
               "command 1 (allocate of tensor 2 \"hidden\") at offset 170 with 80 bytes leaves the device "
               "budget of 240 bytes");
  changed.commands[1].offset = Bytes{18'446'744'073'709'551'610U};
  check_broken(changed, 3, "leaves the device budget");
  changed.commands[1].offset = Bytes{155};
  check_broken(changed, 3, "is not aligned to 10");
  changed = training_plan();
  changed.machine.max_allocation = Bytes{120};
  check_broken(changed, 3, "command 0 (swap_in of tensor 1 \"images\") at offset 100 with 50 bytes crosses a multiple");
  changed.machine.max_allocation = Bytes{50};
  changed.commands[1].offset = Bytes{150};
  check_broken(changed, 3, "initial: tensor 0 \"weights\" at offset 0 with 100 bytes crosses");
}

TEST_CASE("rule 3: no bytes belong to two tensors that both stay") {
  Plan changed = training_plan();
  changed.commands[3].offset = Bytes{90};
  check_broken(changed, 3, "takes [90, 140), which tensor 0 \"weights\" never leaves");
  const Trace trace = two_weights();
  check_broken(trace, plan(trace, machine(200), {resident(0, 0, true), resident(1, 99, true)}, {}), 3,
               "initial has tensor 1 \"b\" at [99, 199), where it also has tensor 0 \"a\"");
}

TEST_CASE("rule 3: allocate is for a tensor that is written next") {
  Plan changed = training_plan();
  changed.commands[3].kind = CommandKind::allocate;
  check_broken(changed, 3, "command 3 (allocate of tensor 3 \"state\") is for a tensor whose next access is not");
}

TEST_CASE("rule 4: a value that is needed again is not dropped") {
  Plan changed = training_plan();
  changed.commands[4] = swap_out(weights, {op(2)}, 3);
  changed.commands[5].after = {op(1)};
  check_broken(changed, 4, "command 5 (release of tensor 3 \"state\") drops a value that is needed again");
}

TEST_CASE("rule 4: a swap_in needs a valid host copy") {
  Plan changed = training_plan();
  changed.commands[1].kind = CommandKind::swap_in;
  check_broken(changed, 4, "command 1 (swap_in of tensor 2 \"hidden\") finds no valid host copy");
  const Trace trace = two_weights();
  check_broken(trace,
               plan(trace, machine(200), {resident(0, 0, false), resident(1, 100, true)},
                    {release(0, {op(0)}), swap_in(0, 0, {cmd(0)}, 2)}),
               4, "command 0 (release of tensor 0 \"a\") drops a value");
}

TEST_CASE("rule 4: a swap_out needs a device copy that is worth it") {
  Plan changed = training_plan();
  changed.commands.push_back(swap_out(images, {op(2)}, 3));
  changed.commands[0].after.push_back(previous_cmd(7));
  check_broken(changed, 4, "copies a tensor that is not on the device");
  changed = training_plan();
  changed.commands[4] = swap_out(hidden, {cmd(1)}, 0);
  changed.commands[5].after = {op(1)};
  check_broken(changed, 4, "copies a dead value");
  // Counted to the next iteration the same copy is of a value that died with this one.
  changed = training_plan();
  changed.initial.push_back(resident(hidden, 150, false));
  changed.commands[4] = swap_out(hidden, {op(-1)});
  changed.commands[5].after = {op(1)};
  changed.commands[6].after = {cmd(4)};
  changed.commands[1].after = {cmd(6)};
  changed.commands.push_back(swap_out(state, {op(1)}));
  changed.commands[5].after.push_back(cmd(7));
  check_broken(changed, 4, "command 4 (swap_out of tensor 2 \"hidden\") copies a dead value");
}

TEST_CASE("rule 4: each iteration brings the input that the host gave for it") {
  Plan changed = training_plan();
  changed.commands[0].after = {op(-2), previous_cmd(5)};
  check_broken(changed, 4,
               "command 0 (swap_in of tensor 1 \"images\") may start before the host gives the value, at "
               "the end of the last operation of the iteration before");
  Trace trace;
  trace.tensors = {tensor("x", 10, TensorKind::input)};
  trace.operations = {operation("0", 10, {0})};
  check_broken(trace, plan(trace, machine(10), {resident(0, 0, true)}, {}), 4, "not that of the iteration");
}

TEST_CASE("rule 4: what the host reads is swapped out before it is dropped or overwritten") {
  Trace trace = training();
  trace.host_reads = {{TensorId{hidden}, OperationId{0}}};
  Plan changed = training_plan();
  check_broken(trace, changed, 4, "command 6 (release of tensor 2 \"hidden\") drops a value that the host reads");
  changed.commands.push_back(swap_out(hidden, {op(0)}));
  changed.commands[6].after.push_back(cmd(7));
  check_valid(trace, changed);

  trace.host_reads = {{TensorId{weights}, OperationId{2}}};
  check_broken(trace, training_plan(), 4, "operation 2 \"backward\" overwrites the value of tensor 0 \"weights\"");
  changed = training_plan();
  changed.commands.push_back(swap_out(weights, {op(2)}, 5));
  check_valid(trace, changed);

  trace.host_reads = {{TensorId{state}, OperationId{1}}};
  check_valid(trace, training_plan());

  Trace constant = two_weights();
  constant.host_reads = {{TensorId{0}, OperationId{1}}};
  check_broken(constant, plan(constant, machine(200), {resident(0, 0, false), resident(1, 100, true)}, {}), 4,
               "no swap_out of that value ever comes");
  check_valid(constant, plan(constant, machine(200), {resident(0, 0, true), resident(1, 100, true)}, {}));
}

TEST_CASE("rule 5: a tensor is on the device at most once at a time") {
  Plan changed = training_plan();
  changed.commands.push_back(swap_in(state, 100, {cmd(3)}, 1));
  check_broken(changed, 5, "command 7 (swap_in of tensor 3 \"state\") takes a place while");
  changed = training_plan();
  changed.commands.push_back(release(state, {cmd(5)}, 2));
  check_broken(changed, 5, "command 7 (release of tensor 3 \"state\") releases a tensor that is not on the device");
  changed = training_plan();
  changed.initial.push_back(changed.initial.front());
  check_broken(changed, 5, "initial[1]: tensor 0 \"weights\" is on the device twice");
}

TEST_CASE("rule 5: every iteration ends as initial says") {
  Plan changed = training_plan();
  changed.commands[6] = swap_out(hidden, {op(2)});
  check_broken(changed, 5, "tensor 2 \"hidden\" is on the device at the end of an iteration, but not in initial");
  changed = training_plan();
  changed.initial[0].host_valid = true;
  check_broken(changed, 5, "tensor 0 \"weights\" has a valid host copy in initial, but not at the end");
  const Trace trace = two_weights();
  check_broken(trace,
               plan(trace, machine(300), {resident(0, 0, true), resident(1, 100, true)},
                    {release(0, {op(0)}), swap_in(0, 200, {cmd(0)}, 2)}),
               5, "tensor 0 \"a\" is in initial at offset 0, but ends an iteration at offset 200");
  check_broken(trace, plan(trace, machine(300), {resident(0, 0, true), resident(1, 100, true)}, {release(0, {op(0)})}),
               5, "tensor 0 \"a\" is in initial, but not on the device at the end");
}

TEST_CASE("rule 6: an operation waits for what brings its bundle") {
  Plan changed = training_plan();
  changed.commands[0].before_operation.reset();
  changed.commands[2].after.push_back(cmd(0));
  check_broken(changed, 6, "operation 0 \"forward\" uses tensor 1 \"images\" and does not wait for command 0");
  changed = training_plan();
  changed.initial.clear();
  check_broken(changed, 6,
               "operation 0 \"forward\" uses tensor 0 \"weights\", which need not be on the device: nothing "
               "brings it");
}

TEST_CASE("rule 6: a release waits for the operations that use the tensor and for its copies") {
  Plan changed = training_plan();
  changed.commands[2].after = {cmd(0)};
  check_broken(changed, 6,
               "operation 0 \"forward\" uses tensor 1 \"images\", which need not be on the device: nothing "
               "brings it back after command 2");
  changed = training_plan();
  changed.commands[6].after = {cmd(4)};
  changed.commands[1].after.push_back(op(-1));
  // Such a release might also drop the value before its use.
  const std::string all = told(training(), changed);
  CHECK(all.find("6: operation 2 \"backward\" uses tensor 2 \"hidden\", which need not be on the device: command 6 "
                 "(release of tensor 2 \"hidden\") does not wait for it") != std::string::npos);
  changed = training_plan();
  changed.commands[5].after = {op(1)};
  check_broken(changed, 6, "does not wait for command 4 (swap_out of tensor 3 \"state\")");
  // Counted to the next iteration, and too early by one operation.
  changed = training_plan();
  changed.initial.push_back(resident(hidden, 150, false));
  changed.commands[6].after = {op(-2)};
  changed.commands[1].after = {cmd(6)};
  check_broken(changed, 6, "does not wait for the use by operation 2 \"backward\" of the iteration before");
  changed.commands[6].after = {op(-1)};
  check_valid(training(), changed);
}

TEST_CASE("rule 6: bytes are taken only after the release of who had them") {
  Plan changed = training_plan();
  changed.commands[3].after = {cmd(0)};
  check_broken(changed, 6,
               "command 3 (swap_in of tensor 3 \"state\") takes [100, 150) and does not wait for command 2");
  changed = training_plan();
  changed.commands[0].after = {op(-1)};
  changed.commands[3].after = {cmd(2), previous_cmd(5)};
  check_broken(changed, 6,
               "command 0 (swap_in of tensor 1 \"images\") takes [100, 150) and does not wait for command 5 "
               "(release of tensor 3 \"state\") of the iteration before");
}

TEST_CASE("rule 6: a tensor comes back only after its own release") {
  Plan changed = training_plan();
  changed.machine.device_budget = Bytes{300};
  changed.commands[0].after = {op(-1)};
  changed.commands[3] = swap_in(state, 250, {}, 1);
  check_broken(changed, 6, "command 3 (swap_in of tensor 3 \"state\") does not wait for command 5");
}

TEST_CASE("rule 6: copies out and writes wait for each other") {
  Plan changed = training_plan();
  changed.commands.push_back(swap_out(weights, {op(0)}));
  check_broken(changed, 6, "operation 2 \"backward\" overwrites tensor 0 \"weights\" and does not wait for command 7");
  changed.commands[7] = swap_out(weights, {op(-1)}, 2);
  check_valid(training(), changed);

  Trace trace = two_weights();
  trace.operations[1] = operation("update a", 10, {}, {}, {0});
  const auto after = [&](Wait wait) {
    return plan(trace, machine(100), {resident(0, 0, false)}, {swap_out(0, {wait}, 1)});
  };
  check_broken(trace, after(op(-2)), 6,
               "does not wait for the write by operation 1 \"update a\" of the iteration before");
  check_valid(trace, after(op(-1)));
}

TEST_CASE("rule 6: chains that reach back without end are refused") {
  Plan changed = training_plan();
  const auto count = static_cast<std::int32_t>(changed.commands.size());
  changed.commands.push_back(release(images, {op(0)}));
  for (std::int32_t link = 0; link < 100; ++link) {
    changed.commands.insert(changed.commands.begin() + count, release(images, {previous_cmd(count + 1)}));
    for (std::int32_t later = count + 1; later + 1 < count + link + 2; ++later) {
      changed.commands[static_cast<std::size_t>(later)].after = {previous_cmd(later + 1)};
    }
  }
  check_broken(changed, 6, "too many iterations");
}

TEST_CASE("rule 7: no wait goes in a circle") {
  Plan changed = training_plan();
  changed.commands[2].after.push_back(cmd(3));
  check_broken(changed, 7, "waits go in a circle: ");
  changed = training_plan();
  changed.commands[6].after.push_back(cmd(6));
  check_broken(changed, 7, "command 6 (release of tensor 2 \"hidden\") waits for command 6");
  changed = training_plan();
  changed.commands[3].after.push_back(op(1));
  check_broken(changed, 7, "operation 1 \"middle\"");
}

TEST_CASE("rule 7: the order of an engine closes circles too") {
  const Trace trace = two_weights();
  // b comes first on its engine, after the release of a, which comes after the operation that waits for a.
  std::vector<Command> commands = {swap_in(1, 0, {cmd(2)}, 1), swap_in(0, 0, {previous_cmd(3)}, 0), release(0, {op(0)}),
                                   release(1, {op(1)})};
  check_broken(trace, plan(trace, machine(100), {}, commands), 7, "waits go in a circle");

  // With one engine for both directions a swap_out in front is enough.
  Trace dirty = two_weights();
  dirty.operations[0] = operation("update a", 10, {}, {}, {0});
  commands = {swap_out(0, {op(0)}), swap_in(0, 0, {previous_cmd(2)}, 0), release(0, {cmd(0)}),
              swap_in(1, 100, {previous_cmd(4)}, 1), release(1, {op(1)})};
  check_valid(dirty, plan(dirty, machine(200), {}, commands));
  check_broken(dirty, plan(dirty, machine(200, 1, Duplex::half), {}, commands), 7, "waits go in a circle");
}

TEST_CASE("no more than 100 violations are told") {
  Plan changed = training_plan();
  for (int i = 0; i < 300; ++i) changed.commands.push_back(release(9, {}));
  CHECK(validate(training(), changed).size() == 100);
}
