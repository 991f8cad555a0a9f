// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <chrono>
#include <limits>
#include <numeric>
#include <vector>

#include <swapmm/plan/planners.hpp>
#include <swapmm/plan/relaxation/lower_bound.hpp>
#include <swapmm/plan/relaxation/replay_bound.hpp>

using namespace swapmm;
using namespace swapmm::planning;

namespace {

constexpr double millisecond = 1e6;

/// A megabyte takes a millisecond in each direction.
Machine machine_with(std::uint64_t budget) {
  Machine machine;
  machine.device_budget = Bytes{budget};
  machine.h2d.bytes_per_second = 1'000'000'000;
  machine.d2h.bytes_per_second = 1'000'000'000;
  return machine;
}

TensorId add_tensor(Trace& trace, TensorKind kind, std::uint64_t bytes = 1'000'000) {
  trace.tensors.push_back({"t", Bytes{bytes}, kind, 0});
  return id_at<TensorId>(trace.tensors.size() - 1);
}

TraceOperation& add_operation(Trace& trace, double milliseconds = 1) {
  trace.operations.emplace_back();
  trace.operations.back().duration = std::chrono::nanoseconds{static_cast<std::int64_t>(milliseconds * millisecond)};
  return trace.operations.back();
}

/// In milliseconds.
double bound_of(const Trace& trace, const Machine& machine) {
  const auto bound = lower_bound(trace, machine);
  REQUIRE(bound);
  return static_cast<double>(bound->count()) / millisecond;
}

doctest::Approx about(double milliseconds) { return doctest::Approx(milliseconds).epsilon(1e-5); }

/// Two operations, each with a tensor of its own; only one has room.
Trace two_take_turns(bool update, double duration = 1) {
  Trace trace;
  for (int i = 0; i < 2; ++i) {
    const TensorId tensor = add_tensor(trace, TensorKind::persistent);
    TraceOperation& operation = add_operation(trace, duration);
    (update ? operation.updates : operation.reads).push_back(tensor);
  }
  return trace;
}

}  // namespace

TEST_CASE("room is held to the end of a computation: two tensors that take turns hide no copy") {
  Machine machine = machine_with(1'000'000);
  CHECK(bound_of(two_take_turns(false), machine) == about(4));
  machine.duplex = Duplex::half;
  CHECK(bound_of(two_take_turns(false), machine) == about(4));
}

TEST_CASE("what is written must go out before it comes back, on one engine one after the other") {
  Machine machine = machine_with(1'000'000);
  // With two engines, bytes come in as others go out.
  CHECK(bound_of(two_take_turns(true), machine) == about(4));
  machine.duplex = Duplex::half;
  CHECK(bound_of(two_take_turns(true), machine) == about(6));
}

TEST_CASE("a copy takes its latency, too") {
  Machine machine = machine_with(1'000'000);
  machine.h2d.latency = std::chrono::microseconds{500};
  CHECK(bound_of(two_take_turns(false), machine) == about(5));
}

TEST_CASE("half of a tensor that has room need not move") {
  CHECK(bound_of(two_take_turns(false), machine_with(1'500'000)) == about(3));
  CHECK(bound_of(two_take_turns(false), machine_with(2'000'000)) == about(2));
}

TEST_CASE("without computation copies are all there is") {
  CHECK(bound_of(two_take_turns(false, 0), machine_with(1'000'000)) == about(2));
}

TEST_CASE("an input that the first operation reads is waited for, however large the budget") {
  Trace trace;
  const TensorId input = add_tensor(trace, TensorKind::input);
  add_operation(trace).reads.push_back(input);
  CHECK(bound_of(trace, machine_with(1'000'000'000)) == about(2));
  add_operation(trace);
  CHECK(bound_of(trace, machine_with(1'000'000'000)) == about(3));
}

TEST_CASE("an input that comes later hides under the operations between") {
  Trace trace;
  const TensorId input = add_tensor(trace, TensorKind::input);
  trace.tensors.front().available_from = 1;
  add_operation(trace);
  add_operation(trace, 0.25);
  add_operation(trace).reads.push_back(input);
  CHECK(bound_of(trace, machine_with(1'000'000'000)) == about(3));
  trace.operations[1].duration = std::chrono::milliseconds{2};
  CHECK(bound_of(trace, machine_with(1'000'000'000)) == about(4));
}

TEST_CASE("what the host reads goes out before it is written again") {
  Trace trace;
  const TensorId output = add_tensor(trace, TensorKind::transient);
  add_operation(trace).writes.push_back(output);
  trace.host_reads.push_back({output, id_at<OperationId>(0)});
  CHECK(bound_of(trace, machine_with(1'000'000'000)) == about(2));
  add_operation(trace, 0.25);
  CHECK(bound_of(trace, machine_with(1'000'000'000)) == about(2));
  trace.operations[1].duration = std::chrono::milliseconds{3};
  CHECK(bound_of(trace, machine_with(1'000'000'000)) == about(4));
}

TEST_CASE("what is made again takes time, in which other parts are copied") {
  // Two tensors take turns: each goes in 1 ms and comes back in 1 ms, or is made again.
  const Trace trace = two_take_turns(true);
  for (const Duplex duplex : {Duplex::full, Duplex::half}) {
    Machine machine = machine_with(1'000'000);
    machine.duplex = duplex;
    const auto planning = make_planning_case(trace, machine);
    REQUIRE(planning);
    const OverlapLedger ledger(*planning);
    REQUIRE(ledger.absences.size() == 2);
    const auto bound = [&](double first, double second, double saved_by_copy = 0) {
      const std::vector<double> again{first * millisecond, second * millisecond};
      return bound_with_replays(*planning, ledger, again, saved_by_copy, {}) / millisecond;
    };
    constexpr double never = std::numeric_limits<double>::infinity();
    CHECK(bound(never, never) == about(bound_of(trace, machine)));
    CHECK(bound(0, 0) == about(2));
    const double copy = duplex == Duplex::full ? 1 : 2;  // of a tensor out and in
    for (const double again : {0.25, 0.5, 1.0, 3.0}) {
      CAPTURE(again);
      CHECK(bound(again, again) == about(2 + 2 * again * copy / (again + copy)));
    }
    CHECK(bound(never, never, 1e15) == about(2));
  }
}

TEST_CASE("a value that lingers goes out, and does not come back") {
  // Each operation makes a value that nobody needs, and that may not be lost before it is made again. One has room.
  Trace trace;
  for (std::uint32_t i = 0; i < 4; ++i) {
    const TensorId tensor = add_tensor(trace, TensorKind::transient);
    add_operation(trace, 0.25).writes.push_back(tensor);
    trace.lingering.push_back({tensor, id_at<OperationId>(i), i + 4});
  }
  CHECK(bound_of(trace, machine_with(1'000'000)) == about(5));
  CHECK(bound_of(trace, machine_with(2'000'000)) == about(3));  // one stays
  CHECK(bound_of(trace, machine_with(4'000'000)) == about(1));
  Machine slow_in = machine_with(1'000'000);
  slow_in.h2d.bytes_per_second /= 1000;
  CHECK(bound_of(trace, slow_in) == about(5));
}

TEST_CASE("values that linger do not hide what comes back") {
  // Forward, eight values for later and eight that linger; backward, the values in reverse order. Two have room.
  Trace trace;
  constexpr std::uint32_t count = 8;
  for (std::uint32_t i = 0; i < count; ++i) {
    const TensorId value = add_tensor(trace, TensorKind::transient);
    const TensorId lingers = add_tensor(trace, TensorKind::transient);
    TraceOperation& operation = add_operation(trace, 0.1);
    operation.writes = {value, lingers};
    trace.lingering.push_back({lingers, id_at<OperationId>(i), 2 * count});
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    add_operation(trace, 0.1).reads.push_back(id_at<TensorId>(2 * (count - 1 - i)));
  }
  const double with = bound_of(trace, machine_with(2'000'000));
  // Forward, all operations but the first wait for two copies out; then seven values come in, the last of them for an
  // operation of its own: 7 x 2 + 8 x 0.1 + 7 x 1 + 0.1.
  CHECK(with == about(21.9));
  const auto plan = make_plan("best", trace, machine_with(2'000'000));
  REQUIRE(plan);
  CHECK(static_cast<double>(plan->predicted.iteration.count()) / millisecond >= with);
  trace.lingering.clear();
  CHECK(bound_of(trace, machine_with(2'000'000)) < with);
}

TEST_CASE("a weight whose uses go around the iteration's end is written back once") {
  // The weight and the two large tensors take turns; the weight is read again before it is updated.
  Trace trace;
  const TensorId weight = add_tensor(trace, TensorKind::persistent);
  add_operation(trace).reads.push_back(weight);
  add_operation(trace).writes.push_back(add_tensor(trace, TensorKind::transient));
  add_operation(trace).updates.push_back(weight);
  add_operation(trace).writes.push_back(add_tensor(trace, TensorKind::transient));
  // Twice in; once out, after the update; nothing of it under an operation that has no room beside its own tensor. The
  // copy out may run while the large tensor's operation has the weight still beside it only where there is room.
  Machine machine = machine_with(1'000'000);
  CHECK(bound_of(trace, machine) == about(4 + 2 + 1));
  machine.duplex = Duplex::half;
  CHECK(bound_of(trace, machine) == about(4 + 2 + 1));
}

TEST_CASE("traces with nothing in them have a bound, too") {
  Trace trace;
  add_operation(trace, 0);
  CHECK(bound_of(trace, machine_with(1)) == 0);
  add_operation(trace, 0).reads.push_back(add_tensor(trace, TensorKind::input, 0));
  CHECK(bound_of(trace, machine_with(1)) == 0);
  Machine machine = machine_with(1);
  machine.h2d.latency = std::chrono::milliseconds{1};
  CHECK(bound_of(trace, machine) == about(1));
}

TEST_CASE("the last bytes of a budget count where a tensor's last bytes can lie there") {
  // 100 bytes in steps of 64: a tensor of 90 fits, rounded up or not. It moves the other way round, too: two tensors of
  // 30 bytes take a step each.
  Trace trace;
  for (int i = 0; i < 2; ++i) add_operation(trace).reads.push_back(add_tensor(trace, TensorKind::persistent, 30));
  Machine machine = machine_with(100);
  machine.alignment = Bytes{64};
  CHECK(bound_of(trace, machine) == about(2));
}

TEST_CASE("a bundle larger than the budget has no bound but a Problem") {
  const auto bound = lower_bound(two_take_turns(false), machine_with(999'999));
  REQUIRE(!bound);
  CHECK(bound.problem().message.find("operation 0") == 0);
}

TEST_CASE("the relaxed optimum says what is away, how long operations take with stalls, and what that gains") {
  const Trace trace = two_take_turns(false);
  const Machine machine = machine_with(1'000'000);
  const Result<PlanningCase> planning = make_planning_case(trace, machine);
  REQUIRE(planning);
  const OverlapLedger ledger(*planning);
  const RelaxedSwaps relaxed = relax_swaps(*planning, ledger);
  REQUIRE(relaxed.away.size() == 2);
  for (const double away : relaxed.away) CHECK(away == doctest::Approx(1).epsilon(1e-4));
  REQUIRE(relaxed.time.size() == 2);
  CHECK(std::accumulate(relaxed.time.begin(), relaxed.time.end(), 0.0) == about(4 * millisecond));
  REQUIRE(relaxed.gain.size() == 2);

  // With room for both nothing gains by being away.
  const Machine roomy = machine_with(2'000'000);
  const Result<PlanningCase> all = make_planning_case(trace, roomy);
  REQUIRE(all);
  const OverlapLedger all_ledger(*all);
  const RelaxedSwaps none = relax_swaps(*all, all_ledger);
  CHECK(none.lower_bound == std::chrono::milliseconds{2});
  CHECK(none.away == std::vector<double>{0, 0});
  CHECK(none.time == std::vector<double>{millisecond, millisecond});
  for (const double gain : none.gain) CHECK(gain == -millisecond);
}

TEST_CASE("every plan carries the bound") {
  const Trace trace = two_take_turns(false);
  for (const NamedPlanner& planner : planners()) {
    CAPTURE(planner.name);
    const Result<Plan> plan = planner.make(trace, machine_with(1'000'000), {});
    REQUIRE(plan);
    CHECK(static_cast<double>(plan->predicted.lower_bound.count()) == about(4 * millisecond));
  }
}

TEST_CASE("refining ends when it is told to") {
  Trace trace;
  for (int i = 0; i < 40; ++i) add_operation(trace).reads.push_back(add_tensor(trace, TensorKind::persistent));
  const Machine machine = machine_with(5'500'000);
  const Result<PlanningCase> planning = make_planning_case(trace, machine);
  REQUIRE(planning);
  const OverlapLedger ledger(*planning);
  int asked = 0;
  const RelaxedSwaps once = relax_swaps(*planning, ledger, {}, [&] { return ++asked > 1; });
  CHECK(asked == 1);
  const RelaxedSwaps all = relax_swaps(*planning, ledger);
  CHECK(once.lower_bound <= all.lower_bound);
  // At least all but the budget comes in once per iteration.
  CHECK(static_cast<double>(all.lower_bound.count()) >= 40 * millisecond);
}
