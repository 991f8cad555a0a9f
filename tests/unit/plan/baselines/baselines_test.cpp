// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include <swapmm/plan/planners.hpp>
#include <swapmm/plan/schedule/absence_stays.hpp>
#include <swapmm/plan/validate.hpp>

#include "support/plain_traces.hpp"

using namespace swapmm;
using namespace swapmm::planning;
using test::machine_of;
using test::plan_of;

namespace {

constexpr TensorId A{0}, B{1}, C{2}, D{3};

TraceTensor tensor(std::uint64_t bytes, TensorKind kind = TensorKind::transient) {
  return {"t", Bytes{bytes}, kind, 0};
}

TraceOperation operation(const char* name, std::int64_t duration, std::vector<TensorId> reads,
                         std::vector<TensorId> writes = {}, std::vector<TensorId> updates = {}) {
  return {name, std::chrono::nanoseconds{duration}, std::move(reads), std::move(writes), std::move(updates)};
}

/// The tensors that are copied, in the order of the queue.
std::vector<TensorId> copied(const Plan& plan, CommandKind kind) {
  std::vector<TensorId> tensors;
  for (const Command& command : plan.commands) {
    if (command.kind == kind) tensors.push_back(command.tensor);
  }
  return tensors;
}

/// Three layers forward and back. Each backward operation needs what the forward one of its layer read.
Trace network(const char* first, const char* second, const char* third) {
  Trace trace;
  trace.tensors = {tensor(10), tensor(10), tensor(10), tensor(10)};
  trace.operations = {operation("make", 20, {}, {A}),        operation(first, 20, {A}, {B}),
                      operation(second, 20, {B}, {C}),       operation(third, 20, {C}, {D}),
                      operation("loss", 20, {}, {}, {D}),    operation("back 3", 20, {C}, {}, {D}),
                      operation("back 2", 20, {B}, {}, {D}), operation("back 1", 20, {A}, {}, {D})};
  return trace;
}

/// How often `left` is released before the swap_in of `tensor`, in the list.
std::size_t releases_before_arrival(const Plan& plan, TensorId left, TensorId tensor) {
  std::size_t releases = 0;
  for (const Command& command : plan.commands) {
    if (command.kind == CommandKind::swap_in && command.tensor == tensor) break;
    if (command.kind == CommandKind::release && command.tensor == left) ++releases;
  }
  return releases;
}

}  // namespace

TEST_CASE("vdnn-all sends out the inputs of every forward operation, room or not, and -conv those of convolutions") {
  const Trace trace = network("Conv2d", "Linear", "CONVOLUTION");
  for (const std::uint64_t budget : {1000U, 30U}) {
    CAPTURE(budget);
    const Plan all = plan_of("vdnn-all", trace, machine_of(budget));
    CHECK(copied(all, CommandKind::swap_out) == std::vector{A, B, C});
    CHECK(copied(all, CommandKind::swap_in) == std::vector{C, B, A});
    CHECK(all.predicted.iteration.count() == 160);
  }
  const Plan convolutions = plan_of("vdnn-conv", trace, machine_of(1000));
  CHECK(copied(convolutions, CommandKind::swap_out) == std::vector{A, C});
  CHECK(copied(convolutions, CommandKind::swap_in) == std::vector{C, A});
  CHECK(plan_of("vdnn-conv", network("a", "b", "c"), machine_of(1000)).predicted.h2d == Bytes{0});
}

TEST_CASE("vdnn keeps weights, and brings inputs that go out twice") {
  Trace trace = network("a", "b", "c");
  trace.tensors[index(A)].kind = TensorKind::persistent;
  trace.tensors[index(B)].kind = TensorKind::input;
  trace.operations[0] = operation("make", 20, {});
  trace.operations[1] = operation("a", 20, {A, B});
  const Plan plan = plan_of("vdnn-all", trace, machine_of(1000));
  CHECK(copied(plan, CommandKind::swap_out) == std::vector{C});
  CHECK(copied(plan, CommandKind::swap_in) == std::vector{B, C, B});
}

TEST_CASE("vdnn prefetches for the nearest operation that lacks something, and not past a convolution") {
  // Most is live at "c", where the forward half ends. "loss" brings C for "back 3". That one brings A for "back 1",
  // before C goes after it; with a convolution in between, the convolution brings it.
  Trace trace = network("a", "b", "c");
  trace.operations[6] = operation("back 2", 20, {}, {}, {D});
  trace.tensors[index(D)].bytes = Bytes{20};
  Plan plan = plan_of("vdnn-all", trace, machine_of(1000));
  CHECK(copied(plan, CommandKind::swap_in) == std::vector{C, A});
  CHECK(releases_before_arrival(plan, C, A) == 1);
  trace.operations[6].name = "back Conv2d";
  plan = plan_of("vdnn-all", trace, machine_of(1000));
  CHECK(releases_before_arrival(plan, C, A) == 2);
}

TEST_CASE("slack sends out what is not used for longer than its copies take, where room lacks") {
  const Trace trace = network("a", "b", "c");
  // C is not used for 20 ns: no longer than 10 out and 10 in.
  const Plan plan = plan_of("slack", trace, machine_of(30));
  CHECK(copied(plan, CommandKind::swap_out) == std::vector{A, B});
  CHECK(copied(plan, CommandKind::swap_in) == std::vector{B, A});
  CHECK(plan.predicted.iteration.count() == 160);
  CHECK(plan_of("slack", trace, machine_of(40)).predicted.h2d == Bytes{0});
  // What still lacks room goes by Belady: no room beside the two of each operation, so A and B come late.
  CHECK(plan_of("slack", trace, machine_of(20)).predicted.iteration.count() == 180);
}

TEST_CASE("slack leaves small tensors where they are, and what else must go goes by belady") {
  Trace trace = network("a", "b", "c");
  trace.tensors[index(D)].bytes = Bytes{20'000};
  const Plan small = plan_of("slack", trace, machine_of(20'020));
  CHECK(copied(small, CommandKind::swap_out) == std::vector{A});
  for (const TensorId id : {A, B, C}) trace.tensors[index(id)].bytes = Bytes{20};
  for (TraceOperation& each : trace.operations) each.duration *= 2;
  const Plan large = plan_of("slack", trace, machine_of(20'040));
  CHECK(copied(large, CommandKind::swap_out) == std::vector{A, B});
}

TEST_CASE("what has to go is what is used furthest ahead, and of those clean before dirty") {
  Trace trace;
  trace.tensors = {tensor(10), tensor(10, TensorKind::persistent), tensor(10), tensor(10)};
  trace.operations = {operation("both", 1, {B}, {A}), operation("work", 1, {}, {C, D}), operation("near", 1, {}),
                      operation("far", 1, {A, B})};
  const Machine machine = machine_of(30);
  const Result<PlanningCase> planning = make_planning_case(trace, machine);
  REQUIRE(planning);
  OverlapLedger ledger(*planning);
  for (Absence& absence : ledger.absences) absence.stays = true;
  let_go_until_it_fits(ledger, 30);
  // B's gaps are (0, 3) and (3, 0 of the next iteration); A's is (0, 3). B is clean.
  for (const Absence& absence : ledger.absences) {
    CAPTURE(absence.first);
    const bool goes = absence.tensor == B && absence.first == 1;
    CHECK(absence.stays == !goes);
    if (goes) CHECK(absence.leaves == 1);
    if (goes) CHECK(absence.returns == 3);
  }
  // Who came back early comes one operation later.
  for (Absence& absence : ledger.absences) {
    absence.stays = absence.tensor == A;
    absence.leaves = absence.first;
    absence.returns = absence.first;
  }
  let_go_until_it_fits(ledger, 30);
  for (const Absence& absence : ledger.absences) {
    if (absence.tensor == B && absence.first == 1) CHECK(absence.returns == 2);
    if (absence.tensor == A) CHECK(absence.stays);
  }
}
