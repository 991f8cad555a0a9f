// SPDX-License-Identifier: Apache-2.0
// From a program and a machine to a plan that can be followed: what is checked, and what is predicted.
#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/plan/planners.hpp>
#include <swapmm/plan/stalls.hpp>
#include <swapmm/runtime/book/planning_task.hpp>

#include "support/failing_new.hpp"

namespace {

using namespace swapmm;
using namespace swapmm::runtime;
using std::chrono::nanoseconds;

/// Six operations of 100 ns, each of which updates a tensor of its own of 60 bytes.
Program planned_program() {
  Program program;
  for (std::uint32_t i = 0; i < 6; ++i) {
    program.trace.tensors.push_back({"t" + std::to_string(i), Bytes{60}, TensorKind::persistent, 0});
    TraceOperation operation;
    operation.duration = nanoseconds{100};
    operation.updates = {id_at<TensorId>(i)};
    program.trace.operations.push_back(operation);
    program.roles.push_back({Role::Kind::handle, i, std::uint64_t{i} + 1, Bytes{60}, false});
    program.first_access.push_back(i);
    program.accesses.push_back({i, Access::update});
    program.scratch_roles.push_back(none);
    program.events.push_back({Event::What::operation, i});
  }
  program.first_access.push_back(6);
  program.events.push_back({Event::What::end_of_iteration, 0});
  return program;
}

/// A byte takes 10 ns.
Machine planned_machine(std::uint64_t budget, std::uint64_t alignment = 1) {
  Machine machine;
  machine.device_budget = Bytes{budget};
  machine.alignment = Bytes{alignment};
  machine.h2d.bytes_per_second = 100'000'000;
  machine.d2h.bytes_per_second = 100'000'000;
  return machine;
}

Plan belady_for(const Machine& machine) {
  Result<Plan> plan = make_plan("belady", planned_program().trace, machine);
  if (!plan) FAIL(plan.problem().message);
  return *std::move(plan);
}

/// A task as the book makes it.
std::unique_ptr<PlanTask> task_for(PlannerChoice planner, const Machine& machine) {
  auto task = std::make_unique<PlanTask>();
  task->program = planned_program();
  task->machine = machine;
  task->planner = std::move(planner);
  return task;
}

/// What is predicted for belady's plan if a planner of the program says that no plan is faster than `claimed`.
Prediction predicted_if(nanoseconds claimed, const Machine& machine) {
  const auto task = task_for({"mine",
                              [&](const Trace&, const Machine& here) {
                                Plan plan = belady_for(here);
                                plan.predicted = {};
                                plan.predicted.lower_bound = claimed;
                                return plan;
                              }},
                             machine);
  task->run();
  REQUIRE(task->result->has_value());
  return (*task->result)->plan.predicted;
}

}  // namespace

TEST_CASE("a plan is checked for the machine that it will run on, whatever machine it was made for") {
  Machine here = planned_machine(256, 64);
  here.max_allocation = Bytes{128};
  here.duplex = Duplex::half;
  Plan plan = belady_for(here);
  plan.machine.device_budget = Bytes{4096};
  plan.machine.alignment = Bytes{1};
  plan.machine.max_allocation.reset();
  plan.machine.duplex = Duplex::full;
  const Result<CompiledPlan> adopted = adopt_plan(planned_program(), plan, here);
  REQUIRE(adopted.has_value());
  CHECK(adopted->plan.machine == here);
  CHECK(adopted->plan.commands == plan.commands);

  const Machine packed = planned_machine(256);
  REQUIRE(adopt_plan(planned_program(), belady_for(packed), packed).has_value());
  const Result<CompiledPlan> unaligned = adopt_plan(planned_program(), belady_for(packed), planned_machine(256, 64));
  REQUIRE(!unaligned.has_value());
  CHECK(unaligned.problem().message.find("the plan breaks rule 3: ") == 0);
  CHECK(unaligned.problem().message.find("is not aligned to 64") != std::string::npos);
}

TEST_CASE("a plan comes with the stalls that it is predicted to have") {
  const Machine machine = planned_machine(256);
  const Result<CompiledPlan> adopted = adopt_plan(planned_program(), belady_for(machine), machine);
  REQUIRE(adopted.has_value());
  const std::vector<Stall> expected = find_stalls(adopted->program.trace, adopted->plan);
  REQUIRE(!expected.empty());
  REQUIRE(adopted->stalls.size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CHECK(adopted->stalls[i].operation == expected[i].operation);
    CHECK(adopted->stalls[i].time == expected[i].time);
    CHECK(adopted->stalls[i].copy == expected[i].copy);
  }
}

TEST_CASE("what a planner of the program copies is counted, and its claim of a bound is kept if it can be true") {
  const Machine machine = planned_machine(256);
  const Prediction belady = belady_for(machine).predicted;
  REQUIRE(belady.iteration > belady.compute);
  REQUIRE(belady.h2d > Bytes{0});
  Prediction expected = belady;
  for (const nanoseconds claimed : {nanoseconds{1}, belady.compute, belady.iteration}) {
    CAPTURE(claimed.count());
    expected.lower_bound = claimed;
    CHECK(predicted_if(claimed, machine) == expected);
  }
  expected.lower_bound = nanoseconds{0};
  for (const nanoseconds claimed : {nanoseconds{-5}, nanoseconds{0}, belady.iteration + nanoseconds{1}}) {
    CAPTURE(claimed.count());
    CHECK(predicted_if(claimed, machine) == expected);
  }
}

TEST_CASE("copies in the two directions are counted apart") {
  Program program = planned_program();
  for (std::uint32_t i = 0; i < 6; ++i) {
    program.trace.operations[i].reads = std::move(program.trace.operations[i].updates);
    program.trace.operations[i].updates.clear();
    program.accesses[i].access = Access::read;
  }
  const auto task = task_for(belady_planner(), planned_machine(256));
  task->program = program;
  task->run();
  REQUIRE(task->result->has_value());
  const Prediction& predicted = (*task->result)->plan.predicted;
  CHECK(predicted.h2d > Bytes{0});
  CHECK(predicted.h2d.value % 60 == 0);
  CHECK(predicted.d2h == Bytes{0});  // nothing is written to
}

TEST_CASE("of a plan without a stall it is known that none is faster, whatever its planner claims") {
  const Prediction predicted = predicted_if(nanoseconds{0}, planned_machine(1024));
  CHECK(predicted.iteration == nanoseconds{600});
  CHECK(predicted.compute == nanoseconds{600});
  CHECK(predicted.lower_bound == nanoseconds{600});
  CHECK(predicted.h2d == Bytes{0});
}

TEST_CASE("that a plan cannot be followed is told in the same words, and a planner of the program is named") {
  const auto refusal_of = [](const PlannerChoice& planner) {
    const auto task = task_for(planner, planned_machine(256));
    for (Role& role : task->program.roles) role.kind = Role::Kind::scratch;
    task->run();
    return task->result->has_value() ? std::string() : task->result->problem().message;
  };
  const std::string plain = refusal_of("belady");
  CHECK(plain.find("commands[") == 0);
  CHECK(plain.find("]: swaps the work area of an operation") != std::string::npos);
  CHECK(refusal_of(belady_planner()) == "planner \"belady\": " + plain);
}

TEST_CASE("a task that is to be run once calls its planner once") {
  int calls = 0;
  const auto task = task_for(
      [&](const Trace& trace, const Machine& machine) {
        ++calls;
        return make_plan("belady", trace, machine);
      },
      planned_machine(256));
  CHECK(!task->done);
  task->run_once();
  CHECK(task->done);
  task->run_once();
  CHECK(calls == 1);
  CHECK(task->result->has_value());
}

TEST_CASE("a task that ran out of memory can be run again, and then makes the same plan") {
  const std::vector<Command> commands = belady_for(planned_machine(256)).commands;
  int thrown = 0;
  bool fired = true;
  for (std::uint64_t n = 1; fired; n += 1 + n / 4) {
    CAPTURE(n);
    const auto task = task_for("belady", planned_machine(256));
    try {
      const test::FailingNew failing(n);
      const auto look = [&] { fired = failing.fired(); };
      try {
        task->run_once();
      } catch (...) {
        look();
        throw;
      }
      look();
    } catch (const std::bad_alloc&) {
      ++thrown;
      CHECK(!task->done);
      CHECK(!task->result);
      task->run_once();
    }
    REQUIRE(task->done);
    REQUIRE(task->result->has_value());
    CHECK((*task->result)->plan.commands == commands);
  }
  CHECK(thrown > 10);
}
