// SPDX-License-Identifier: Apache-2.0
#pragma once

// A program book that is told measured times as plain data: no device runs.

#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/plan/simulate.hpp>
#include <swapmm/runtime/book/program_book.hpp>

namespace swapmm::test {

/// What the planner of a test makes next.
enum class Way : std::uint8_t {
  resident,       ///< everything stays on the device: no copies
  turned,         ///< the same with other places
  swapping,       ///< the first tensor goes out after its operation and comes back for the next iteration
  swapping_late,  ///< the same, but it goes out only after the last operation
  none,           ///< no plan
};

inline Result<Plan> plan_that_way(Way way, const Trace& trace, const Machine& machine) {
  if (way == Way::none) return Problem{"no idea"};
  const std::size_t n = trace.operations.size();
  const bool swaps = way == Way::swapping || way == Way::swapping_late;
  Plan plan;
  plan.trace_digest = digest(trace);
  plan.machine = machine;
  for (std::size_t i = 0; i < trace.tensors.size(); ++i) {
    const std::size_t place = way == Way::turned ? trace.tensors.size() - 1 - i : i;
    plan.initial.push_back({id_at<TensorId>(i), Bytes{64 * place}, swaps && i == 0});
  }
  if (swaps) {
    const TensorId first = id_at<TensorId>(0);
    const auto last_before = id_at<OperationId>(way == Way::swapping ? 0 : n - 1);
    plan.commands.resize(3);
    plan.commands[0] = {CommandKind::swap_out, Tier::host, first, {}, {after_operation(last_before)}, {}};
    plan.commands[1] = {CommandKind::release, Tier::host, first, {}, {after_command(id_at<CommandId>(0))}, {}};
    plan.commands[2] = {CommandKind::swap_in,         Tier::host, first, {}, {after_command(id_at<CommandId>(1))},
                        static_cast<std::uint32_t>(n)};
  }
  return plan;
}

using Times = std::vector<std::int64_t>;

/// An iteration that updates one tensor in each operation, the first of which has that serial number.
inline runtime::IterationLog log_of_updates(std::uint64_t serial, const Times& durations, bool timed,
                                            std::uint64_t bytes = 64) {
  runtime::IterationLog log;
  for (std::uint32_t i = 0; i < durations.size(); ++i) {
    runtime::LogTensor tensor;
    tensor.serial = serial + i;
    tensor.record = i;
    tensor.bytes = Bytes{bytes};
    tensor.name = "t" + std::to_string(i);
    log.tensors.push_back(tensor);
    log.accesses.push_back({i, Access::update});
    log.operations.push_back({"update", i, 1, std::chrono::nanoseconds{timed ? durations[i] : 0}});
    log.events.push_back({runtime::LogEvent::What::operation, i});
  }
  log.timed = timed;
  return log;
}

inline const Times usual_times{900, 100};  // 1000 ns if everything stays on the device, 2180 ns with the swap
inline const Times quick_times{90, 10};    // 100 ns, 1370 ns

/// A book whose planner makes what `way` says, and a machine on which a tensor takes 640 ns in each direction.
class MeasuredBook {
 public:
  // Serial numbers of the first tensors of programs, which differ in the sizes of their tensors, too.
  static constexpr std::uint64_t mine = 1;
  static constexpr std::uint64_t others = 101;
  static constexpr std::uint64_t third = 201;
  static constexpr std::uint64_t fourth = 301;
  static constexpr std::uint64_t again = 401;  // does what `mine` does, with other tensors

  static SchedulerOptions options(std::size_t sample_every = 8) {
    SchedulerOptions made;
    made.sample_every = sample_every;
    made.replan_above = 0.25;
    made.trial_iterations = 4;
    return made;
  }

  explicit MeasuredBook(SchedulerOptions given = options()) : book(with_planner(std::move(given))) {
    machine.device_budget = Bytes{1024};
    machine.h2d.bytes_per_second = 100'000'000;
    machine.d2h.bytes_per_second = 100'000'000;
    book.use_budget(machine.device_budget);
  }

  std::uint64_t observe(std::uint64_t program = mine, const Times& durations = usual_times, bool timed = true) {
    const std::uint64_t bytes = program == again ? 64 : 64 - program / 10;  // other sizes make another program
    return book.observed("train", log_of_updates(program, durations, timed, bytes), machine);
  }
  std::uint64_t observe_untimed(std::uint64_t program = mine) { return observe(program, usual_times, false); }
  /// Two iterations on demand: the plan is on trial. The id of the sequence.
  std::uint64_t make_plan(std::uint64_t program = mine) {
    const std::size_t known = book.cases("train").size();
    observe(program);
    const std::uint64_t id = observe(program);
    REQUIRE(book.cases("train").size() == known + 1);
    return id;
  }

  [[nodiscard]] const runtime::PlanCase& front() const { return book.cases("train").front(); }
  [[nodiscard]] runtime::ProgramBook::Measures measures() const { return book.measures("train"); }
  [[nodiscard]] Report report() const {
    Report filled;
    book.summarize(filled);
    return filled;
  }

  /// Rounds by the plan took so long.
  void rounds_take(std::int64_t time, int times) {
    for (int i = 0; i < times; ++i) book.round_took(front().plan, std::chrono::nanoseconds{time});
  }
  /// Iterations on demand took so long.
  void demand_takes(std::uint64_t id, std::int64_t time, int times) {
    for (int i = 0; i < times; ++i) book.iteration_took(id, std::chrono::nanoseconds{time}, false);
  }
  /// Rounds by the plan have ended.
  void end_rounds(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) book.round_ended("train", front().plan, false);
  }
  void sample(const Times& durations) {
    std::vector<std::chrono::nanoseconds> times;
    for (const std::int64_t duration : durations) times.emplace_back(duration);
    book.sampled(front().plan, times, machine);
  }
  void load(Way which) {
    const runtime::CompiledPlan& known = *front().plan;
    Plan plan = *plan_that_way(which, known.program.trace, known.plan.machine);
    plan.planner = "somebody";
    plan.predicted.iteration = simulate(known.program.trace, plan).iteration;
    book.load("train", std::move(plan));
  }

  /// A plan whose trial has ended well.
  std::uint64_t settle(std::int64_t time = 1000) {
    const std::uint64_t id = make_plan();
    rounds_take(time, 2);
    REQUIRE(front().state == PlanState::settled);
    return id;
  }
  /// A plan that takes 1000 ns, with some rounds on demand to come that tell whether they take less.
  std::uint64_t check(std::uint64_t program = mine) {
    const std::uint64_t id = make_plan(program);
    book.iteration_took(id, std::chrono::nanoseconds{500}, true);
    rounds_take(1000, 2);
    REQUIRE(front().checking);
    return id;
  }
  /// A plan that takes 1000 ns where on demand takes `demand`.
  std::uint64_t leave(std::int64_t demand = 500) {
    const std::uint64_t id = check();
    demand_takes(id, demand, 2);
    REQUIRE(front().state == PlanState::left);
    return id;
  }

  Machine machine;
  Way way = Way::resident;
  runtime::ProgramBook book;

 private:
  SchedulerOptions with_planner(SchedulerOptions given) {
    given.planner = PlannerChoice(
        "tester", [this](const Trace& trace, const Machine& now) { return plan_that_way(way, trace, now); });
    return given;
  }
};

}  // namespace swapmm::test
