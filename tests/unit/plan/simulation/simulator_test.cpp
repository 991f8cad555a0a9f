// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <utility>
#include <vector>

#include <swapmm/plan/simulate.hpp>
#include <swapmm/plan/validate.hpp>

#include "support/plan_text.hpp"

using namespace swapmm;
using namespace swapmm::test;

namespace {

using Times = std::vector<std::pair<std::int64_t, std::int64_t>>;

Times times(const std::vector<Span>& spans) {
  Times result;
  for (const Span& span : spans) result.emplace_back(span.start.count(), span.end.count());
  return result;
}

std::vector<std::int64_t> ends(const Trace& trace, const Plan& plan, std::size_t iterations) {
  std::vector<std::int64_t> result;
  for (const auto end : iteration_ends(trace, plan, iterations)) result.push_back(end.count());
  return result;
}

Simulation run(const Trace& trace, const Plan& plan) {
  for (const Violation& violation : validate(trace, plan)) FAIL_CHECK(violation.message);
  return simulate(trace, plan);
}

/// a of 30 bytes is updated for 10 ns, b of 50 bytes read for 100 ns.
Trace two_tensors() {
  Trace trace;
  trace.tensors = {tensor("a", 30, TensorKind::persistent), tensor("b", 50, TensorKind::persistent)};
  trace.operations = {operation("update a", 10, {}, {}, {0}), operation("read b", 100, {1})};
  return trace;
}

/// a comes and goes beside b, which stays.
Plan swap_a(const Trace& trace, Duplex duplex) {
  return plan(trace, machine(80, 1, duplex), {resident(1, 30, true)},
              {swap_in(0, 0, {previous_cmd(2)}, 0), swap_out(0, {op(0)}), release(0, {cmd(1)})});
}

}  // namespace

TEST_CASE("without a command an iteration takes the sum of its operations") {
  const Trace trace = two_tensors();
  const Plan all_stay = plan(trace, machine(80), {resident(0, 0, false), resident(1, 30, true)}, {});
  const Simulation simulation = run(trace, all_stay);
  CHECK(simulation.iteration.count() == 110);
  CHECK(simulation.compute.count() == 110);
  CHECK(simulation.h2d == Bytes{0});
  CHECK(simulation.d2h == Bytes{0});
  CHECK(simulation.peak == Bytes{80});
  CHECK(times(simulation.operations) == Times{{0, 10}, {10, 110}});
  CHECK(ends(trace, all_stay, 3) == std::vector<std::int64_t>{110, 220, 330});
}

TEST_CASE("copies run ahead into the iteration before, and only the first iteration waits for them") {
  const Trace trace = two_tensors();
  // Out for 30 under the second operation, in for 30 right after it: all hidden but in the first iteration.
  for (const Duplex duplex : {Duplex::full, Duplex::half}) {
    const Plan swapping = swap_a(trace, duplex);
    const Simulation simulation = run(trace, swapping);
    CHECK(simulation.iteration.count() == 110);
    CHECK(simulation.h2d == Bytes{30});
    CHECK(simulation.d2h == Bytes{30});
    CHECK(times(simulation.operations) == Times{{0, 10}, {10, 110}});
    CHECK(times(simulation.commands) == Times{{-70, -40}, {10, 40}, {40, 40}});
    CHECK(ends(trace, swapping, 3) == std::vector<std::int64_t>{140, 250, 360});
  }
}

TEST_CASE("an operation stalls until its copies have ended") {
  Trace trace = two_tensors();
  trace.operations[1].duration = std::chrono::nanoseconds{20};
  const Simulation simulation = run(trace, swap_a(trace, Duplex::full));
  // Circle of a: 10 in use, 30 out, 30 in.
  CHECK(simulation.iteration.count() == 70);
  CHECK(simulation.compute.count() == 30);
  CHECK(times(simulation.operations) == Times{{40, 50}, {50, 70}});
  CHECK(times(simulation.commands) == Times{{10, 40}, {50, 80}, {80, 80}});
}

TEST_CASE("a copy takes latency and size over bandwidth, rounded up") {
  Trace trace = two_tensors();
  Plan swapping = swap_a(trace, Duplex::full);
  swapping.machine.h2d = {4'000'000'000, std::chrono::nanoseconds{5}};   // 7.5 + 5
  swapping.machine.d2h = {20'000'000'000, std::chrono::nanoseconds{2}};  // 1.5 + 2
  CHECK(times(run(trace, swapping).commands) == Times{{-96, -83}, {10, 14}, {14, 14}});

  // The product of bytes and nanoseconds per second does not fit 64 bits.
  trace.tensors[0].bytes = Bytes{std::uint64_t{1} << 50U};
  swapping = plan(trace, machine(std::uint64_t{1} << 51U), {resident(1, 0, true)},
                  {swap_in(0, 64, {previous_cmd(2)}, 0), swap_out(0, {op(0)}), release(0, {cmd(1)})});
  swapping.machine.h2d.bytes_per_second = std::uint64_t{1} << 40U;
  swapping.machine.d2h.bytes_per_second = std::uint64_t{1} << 30U;
  CHECK(run(trace, swapping).iteration.count() == 1024'000'000'000 + 1'048'576'000'000'000 + 10);
}

TEST_CASE("with half duplex a copy waits for the one of the other direction") {
  Trace trace;
  trace.tensors = {tensor("a", 40, TensorKind::persistent), tensor("b", 40, TensorKind::persistent)};
  trace.operations = {operation("update a", 10, {}, {}, {0}), operation("read b", 10, {1})};
  // b goes with the iteration and comes back after the first operation, when a is written back.
  const auto with = [&](Duplex duplex) {
    return plan(trace, machine(80, 1, duplex), {resident(0, 0, true), resident(1, 40, true)},
                {release(1, {op(-1)}), swap_out(0, {op(0)}, 2), swap_in(1, 40, {op(0), cmd(0)}, 1)});
  };
  const Simulation full = run(trace, with(Duplex::full));
  CHECK(full.iteration.count() == 60);
  CHECK(times(full.operations) == Times{{0, 10}, {50, 60}});
  CHECK(times(full.commands) == Times{{0, 0}, {10, 50}, {10, 50}});
  const Simulation half = run(trace, with(Duplex::half));
  CHECK(half.iteration.count() == 100);
  CHECK(times(half.operations) == Times{{0, 10}, {90, 100}});
  CHECK(times(half.commands) == Times{{0, 0}, {10, 50}, {50, 90}});
}

TEST_CASE("a copy engine that is busy longer than the operations sets the pace") {
  Trace trace;
  trace.tensors = {tensor("a", 31, TensorKind::persistent), tensor("b", 10, TensorKind::persistent)};
  trace.operations = {operation("read a", 1, {0}), operation("read b", 1, {1})};
  const Plan copying =
      plan(trace, machine(41), {resident(0, 0, true), resident(1, 31, true)}, {swap_out(0, {op(-2)}, 2)});
  CHECK(ends(trace, copying, 5) == std::vector<std::int64_t>{2, 33, 64, 95, 126});
  CHECK(run(trace, copying).iteration.count() == 31);
}

TEST_CASE("iterations may alternate between two lengths, and the mean over both counts") {
  Trace trace;
  trace.tensors = {tensor("a", 17, TensorKind::persistent), tensor("b", 16, TensorKind::persistent)};
  trace.operations = {operation("read b", 1, {1}), operation("read a", 1, {0})};
  // The circle leads over two iterations: out for 17, in for 16, and two operations before the next but one may start.
  const Plan alternating = plan(trace, machine(33), {resident(0, 0, true), resident(1, 17, true)},
                                {swap_out(0, {op(-1)}), release(1, {op(0)}), swap_in(1, 17, {cmd(0), cmd(1)}, 2)});
  CHECK(ends(trace, alternating, 8) == std::vector<std::int64_t>{2, 35, 52, 70, 87, 105, 122, 140});
  const Simulation simulation = run(trace, alternating);
  CHECK(simulation.iteration.count() == 18);  // 17.5, rounded to the nearest
  CHECK(simulation.peak == Bytes{33});
}

TEST_CASE("peak counts what is occupied at one time, in sizes rounded up to the alignment") {
  const Trace trace = two_tensors();
  // a's 30 bytes count 40, b's 50 count 60; a is gone for a while, and comes back within the iteration before.
  Plan swapping = plan(trace, machine(100, 20), {resident(1, 40, true)},
                       {swap_in(0, 0, {previous_cmd(2)}, 0), swap_out(0, {op(0)}), release(0, {cmd(1)})});
  CHECK(run(trace, swapping).peak == Bytes{100});

  // One after the other at the same place: never both.
  Plan sharing = plan(trace, machine(60, 20), {},
                      {swap_in(0, 0, {previous_cmd(4)}, 0), swap_out(0, {op(0)}), release(0, {cmd(1)}),
                       swap_in(1, 0, {cmd(2)}, 1), release(1, {op(1)})});
  CHECK(run(trace, sharing).peak == Bytes{60});
}

TEST_CASE("an iteration that takes no time at all is simulated too") {
  Trace trace = two_tensors();
  for (TraceOperation& operation : trace.operations) operation.duration = std::chrono::nanoseconds{0};
  const Simulation simulation =
      run(trace, plan(trace, machine(80), {resident(0, 0, false), resident(1, 30, true)}, {}));
  CHECK(simulation.iteration.count() == 0);
  CHECK(simulation.peak == Bytes{80});
}

TEST_CASE("copies that run ever further ahead do not keep the simulation from ending") {
  Trace trace = two_tensors();
  trace.tensors.push_back(tensor("unused", 10, TensorKind::persistent));
  const Plan racing = plan(trace, machine(100), {resident(0, 0, false), resident(1, 30, true)},
                           {swap_in(2, 80, {previous_cmd(1)}), release(2, {cmd(0)})});
  const Simulation simulation = run(trace, racing);
  CHECK(simulation.iteration.count() == 110);
  CHECK(simulation.h2d == Bytes{10});
}

TEST_CASE("times that do not fit stay at the end of time instead of wrapping") {
  Trace trace = two_tensors();
  trace.operations[0].duration = std::chrono::nanoseconds{std::int64_t{1} << 61U};
  trace.operations[1].duration = std::chrono::nanoseconds{(std::int64_t{1} << 61U) - 1};
  const Plan all_stay = plan(trace, machine(80), {resident(0, 0, false), resident(1, 30, true)}, {});
  const std::vector<std::int64_t> all = ends(trace, all_stay, 3);
  CHECK(all[0] == (std::int64_t{1} << 62U) - 1);
  CHECK(all[2] == all[0]);
  CHECK(simulate(trace, all_stay).compute.count() == all[0]);
}
