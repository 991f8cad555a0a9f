// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/plan/v2/planners.hpp>
#include <swapmm/plan/v2/simulate.hpp>
#include <swapmm/plan/v2/validate.hpp>
#include <swapmm/plan/v2/ways.hpp>
#include <swapmm/plan/validate.hpp>
#include <swapmm/plan/ways.hpp>
#include <swapmm/plan/ways/bound.hpp>
#include <swapmm/plan/ways/program/pieces.hpp>

namespace swapmm::test::pieces_test {
using std::chrono::nanoseconds;

constexpr TensorId id(std::uint32_t i) { return static_cast<TensorId>(i); }
constexpr OperationId op(std::uint32_t i) { return static_cast<OperationId>(i); }

/// A field of 1000 bytes, which ten operations change slab by slab.
Trace slabs() {
  Trace trace;
  trace.name = "slabs";
  trace.tensors = {{"field", Bytes{1000}, TensorKind::persistent, 0}};
  for (std::uint32_t i = 0; i < 10; ++i) {
    TraceOperation operation;
    operation.name = "slab " + std::to_string(i);
    operation.duration = nanoseconds{200};
    operation.updates = {id(0)};
    operation.in_pieces = true;
    trace.operations.push_back(std::move(operation));
    trace.ranges.push_back({op(i), id(0), Bytes{100 * std::uint64_t{i}}, Bytes{100}});
  }
  return trace;
}

Machine machine(std::uint64_t budget) {
  Machine made;
  made.name = "m";
  made.device_budget = Bytes{budget};
  made.alignment = Bytes{1};
  made.h2d = made.d2h = {1'000'000'000, nanoseconds{0}};
  return made;
}

std::vector<Bytes> edges(std::uint64_t step, std::uint64_t end) {
  std::vector<Bytes> list;
  for (std::uint64_t at = step; at < end; at += step) list.push_back(Bytes{at});
  return list;
}

TEST_CASE("a tensor with a form is divided where forms may not be used, and the plan is one for the trace as it is") {
  Trace trace = slabs();
  trace.tensors.push_back({"other", Bytes{600}, TensorKind::persistent, 0});
  TraceOperation operation;
  operation.name = "other";
  operation.duration = nanoseconds{200};
  operation.updates = {id(1)};
  trace.operations.push_back(operation);
  const auto made_with = [&](bool has_form) {
    trace.forms.clear();
    if (has_form) trace.forms.push_back({id(0), "z", Bytes{500}, Bytes{400}, nanoseconds{10}, nanoseconds{10}});
    PlanningOptions options;
    options.ways.compress = false;
    return plan_with_ways(trace, machine(1100), options);
  };
  const Result<PlanWithWays> divided = made_with(false);
  REQUIRE(divided);
  CHECK(!divided->ways.pieces.empty());
  const Result<PlanWithWays> coded = made_with(true);
  REQUIRE(coded);
  CHECK(coded->ways == divided->ways);
  CHECK(coded->plan.predicted.iteration == divided->plan.predicted.iteration);
  CHECK(coded->plan.predicted.lower_bound <= divided->plan.predicted.iteration);
  CHECK(with_ways(trace, coded->ways));
  WaysBack both = coded->ways;  // a tensor is divided or encoded
  both.codings.push_back({id(0), 0, OperationId{0}, OperationId{2}});
  CHECK_FALSE(with_ways(trace, both));
}

TEST_CASE("pieces end where accesses do, and are no larger than a part of the budget") {
  const Trace trace = slabs();
  CHECK(planning::possible_pieces(trace, machine(2400)) == std::vector<TensorPieces>{{id(0), edges(100, 1000)}});
  CHECK(planning::possible_pieces(trace, machine(1200)) == std::vector<TensorPieces>{{id(0), edges(50, 1000)}});
  Trace whole = slabs();
  whole.operations[3].in_pieces = false;
  CHECK(planning::possible_pieces(whole, machine(1200)).size() == 1);  // one piece for what it accesses
  std::vector<Bytes> unbroken = edges(50, 1000);
  std::erase(unbroken, Bytes{350});
  CHECK(planning::possible_pieces(whole, machine(1200)) == std::vector<TensorPieces>{{id(0), unbroken}});
  whole.ranges[3].bytes = Bytes{200};  // and two for others
  CHECK(planning::possible_pieces(whole, machine(1200)).empty());
  Trace coded = slabs();
  coded.forms = {{id(0), "half", Bytes{500}, Bytes{500}, nanoseconds{1}, nanoseconds{1}}};
  CHECK(planning::possible_pieces(coded, machine(1200)).empty());
  Trace unused = slabs();
  unused.tensors.push_back({"unused", Bytes{9000}, TensorKind::persistent, 0});
  CHECK(planning::possible_pieces(unused, machine(2400)).size() == 1);
}

TEST_CASE("operations that are not in pieces need no more than the one piece that they access") {
  Trace trace;
  trace.name = "parts";
  trace.tensors = {{"field", Bytes{1000}, TensorKind::persistent, 0}, {"other", Bytes{600}, TensorKind::persistent, 0}};
  for (const std::uint32_t tensor : {0U, 1U}) {
    TraceOperation operation;
    operation.name = "change " + std::to_string(tensor);
    operation.duration = nanoseconds{1000};
    operation.updates = {id(tensor)};
    trace.operations.push_back(std::move(operation));
  }
  trace.ranges = {{op(0), id(0), Bytes{0}, Bytes{400}}};
  const Result<PlanWithWays> all_fits = plan_with_ways(trace, machine(1000));
  REQUIRE(all_fits);
  CHECK(all_fits->plan.predicted.iteration == nanoseconds{2000});
  CHECK(all_fits->plan.predicted.lower_bound == nanoseconds{2000});
  CHECK(all_fits->ways.pieces.size() == 1);
  CHECK(plan_with_ways(trace, machine(600)));
  CHECK(!plan_with_ways(trace, machine(599)));
  // An operation that needs all of it in one place leaves it whole. The bound is for any division.
  TraceOperation whole = trace.operations[0];
  trace.operations.push_back(whole);
  const Result<PlanWithWays> undivided = plan_with_ways(trace, machine(1000));
  REQUIRE(undivided);
  CHECK(undivided->ways.pieces.empty());
  CHECK(undivided->plan.predicted.lower_bound >= nanoseconds{3000});
  const Result<nanoseconds> any = planning::ways_bound(trace, machine(1000));
  REQUIRE(any);
  CHECK(undivided->plan.predicted.lower_bound == std::min(*any, undivided->plan.predicted.iteration));
}

TEST_CASE("each piece is a tensor, and each access is one to the pieces that it concerns") {
  Trace trace = slabs();
  trace.ranges.erase(trace.ranges.begin() + 1, trace.ranges.end());  // all but the first access all of it
  trace.host_reads = {{id(0), op(9)}};
  const std::vector<TensorPieces> pieces{{id(0), {Bytes{100}, Bytes{400}}}};
  const Result<planning::DividedTrace> divided = planning::with_pieces(trace, pieces);
  REQUIRE(divided);
  CHECK_FALSE(needs_version_2(divided->trace));
  REQUIRE(divided->trace.tensors.size() == 3);
  CHECK(divided->trace.tensors[1].bytes == Bytes{300});
  CHECK(divided->trace.tensors[2].bytes == Bytes{600});
  CHECK(divided->parts == std::vector<TensorPart>{{id(0), 0}, {id(0), 1}, {id(0), 2}});
  CHECK(divided->trace.operations[0].updates == std::vector{id(0)});
  CHECK(divided->trace.operations[1].updates == std::vector{id(0), id(1), id(2)});
  CHECK(divided->trace.host_reads.size() == 3);
}

TEST_CASE("a write of a part is an update where the tensor has a value") {
  Trace trace = slabs();
  trace.tensors[0].kind = TensorKind::transient;
  for (TraceOperation& operation : trace.operations) std::swap(operation.writes, operation.updates);
  const Result<planning::DividedTrace> whole = planning::with_pieces(trace, {});
  REQUIRE(whole);
  CHECK(whole->trace.operations[0].writes == std::vector{id(0)});
  CHECK(whole->trace.operations[1].updates == std::vector{id(0)});
  const std::vector<TensorPieces> pieces{{id(0), edges(100, 1000)}};
  const Result<planning::DividedTrace> divided = planning::with_pieces(trace, pieces);
  REQUIRE(divided);
  CHECK(divided->trace.operations[1].writes == std::vector{id(1)});
}

TEST_CASE("divisions that are not possible are refused, with a reason") {
  const auto refuses = [](const Trace& trace, std::vector<TensorPieces> pieces) {
    const Result<planning::DividedTrace> divided = planning::with_pieces(trace, pieces);
    return !divided && !divided.problem().message.empty();
  };
  const std::vector<TensorPieces> good{{id(0), edges(100, 1000)}};
  CHECK_FALSE(refuses(slabs(), good));
  CHECK(refuses(slabs(), {{id(0), {Bytes{150}}}}));              // in the middle of a slab
  CHECK(refuses(slabs(), {{id(0), {Bytes{200}, Bytes{200}}}}));  // not ascending
  CHECK(refuses(slabs(), {{id(0), {Bytes{1000}}}}));             // behind the end
  CHECK(refuses(slabs(), {{id(1), {Bytes{100}}}}));              // not there
  CHECK(refuses(slabs(), {good[0], good[0]}));
  Trace whole = slabs();
  whole.operations[3].in_pieces = false;
  CHECK_FALSE(refuses(whole, good));                  // one piece
  CHECK(refuses(whole, {{id(0), edges(50, 1000)}}));  // two
  Trace coded = slabs();
  coded.forms = {{id(0), "half", Bytes{500}, Bytes{500}, nanoseconds{1}, nanoseconds{1}}};
  const Result<planning::DividedTrace> without_forms = planning::with_pieces(coded, good);
  REQUIRE(without_forms);
  CHECK(without_forms->trace.forms.empty());
  Trace unwritten = slabs();
  unwritten.tensors[0].kind = TensorKind::transient;
  unwritten.operations[0].writes = std::exchange(unwritten.operations[0].updates, {});
  CHECK(refuses(unwritten, good));  // slab 1 is read before it is written
}

TEST_CASE("a tensor above the budget is planned in pieces, and the plan is valid in version 2") {
  const Trace trace = slabs();
  const v2::Machine small = v2::from_version_1(machine(300));
  const Result<v2::Plan> plan = v2::make_plan("best", trace, small);
  REQUIRE(plan);
  CHECK(v2::validate(trace, *plan).empty());
  REQUIRE(plan->pieces.size() == 1);
  // Each slab takes 100 ns in and 100 ns out, in the shadow of the 200 ns of another one.
  const v2::Simulation simulated = v2::simulate(trace, *plan);
  CHECK(simulated.iteration == nanoseconds{2000});
  CHECK(simulated.peaks[0] <= Bytes{300});
  CHECK(plan->predicted.iteration == simulated.iteration);
  CHECK(plan->predicted.lower_bound <= plan->predicted.iteration);
  PlanningOptions in_one;
  in_one.ways.pieces = false;
  CHECK_FALSE(v2::make_plan("best", trace, small, in_one));
}

TEST_CASE("pieces that operations make one by one are made again one by one") {
  Trace trace;
  trace.name = "made in pieces";
  trace.tensors = {{"field", Bytes{400}, TensorKind::transient, 0}, {"other", Bytes{800}, TensorKind::transient, 0}};
  const auto operation = [&](std::string name, std::int64_t time) -> TraceOperation& {
    TraceOperation& made = trace.operations.emplace_back();
    made.name = std::move(name);
    made.duration = nanoseconds{time};
    made.in_pieces = true;
    return made;
  };
  const auto access = [&](std::uint32_t slab) {
    trace.ranges.push_back({op(static_cast<std::uint32_t>(trace.operations.size() - 1)), id(0),
                            Bytes{100 * std::uint64_t{slab}}, Bytes{100}});
  };
  for (std::uint32_t i = 0; i < 4; ++i) {
    TraceOperation& make = operation("make " + std::to_string(i), 10);
    make.writes = {id(0)};
    make.replayable = true;
    access(i);
  }
  operation("make other", 1000).writes = {id(1)};
  operation("use other", 1000).reads = {id(1)};
  for (std::uint32_t i = 0; i < 4; ++i) {
    operation("use " + std::to_string(i), 10).reads = {id(0)};
    access(i);
  }
  // To the whole field the second operation is an update, which may not run again.
  Machine on = machine(1000);
  on.h2d.bytes_per_second = on.d2h.bytes_per_second = 10'000'000;
  const Result<PlanWithWays> made = plan_with_ways(trace, on);
  REQUIRE(made);
  REQUIRE(made->ways.pieces.size() >= 1);
  CHECK(made->ways.replays.size() >= 2);
  CHECK(made->plan.predicted.iteration <= nanoseconds{2120});
}

TEST_CASE("the bound holds for plans that divide some tensors where dividing all of them does not fit") {
  const auto program = [](bool last_is_divisible) {
    Trace trace;
    trace.name = "some fit";
    for (const auto& [name, bytes] : {std::pair{"a", 1024}, {"d", 1024}, {"g", 512}, {"b", 1024}, {"c", 1024}}) {
      trace.tensors.push_back({name, Bytes{static_cast<std::uint64_t>(bytes)}, TensorKind::persistent, 0});
    }
    const auto reads = [&](std::vector<TensorId> tensors, bool in_pieces) {
      TraceOperation operation;
      operation.name = "reads";
      operation.duration = nanoseconds{1000};
      operation.reads = std::move(tensors);
      operation.in_pieces = in_pieces;
      trace.operations.push_back(std::move(operation));
      return op(static_cast<std::uint32_t>(trace.operations.size() - 1));
    };
    reads({id(3), id(4)}, last_is_divisible);
    const OperationId part = reads({id(3)}, last_is_divisible);
    if (last_is_divisible) trace.ranges.push_back({part, id(3), Bytes{0}, Bytes{100}});
    for (int i = 0; i < 20; ++i) {
      for (const std::uint32_t other : {1U, 2U}) {
        trace.ranges.push_back({reads({id(0), id(other)}, true), id(0), Bytes{0}, Bytes{512}});
      }
    }
    trace.ranges.push_back({reads({id(0)}, true), id(0), Bytes{512}, Bytes{512}});
    return trace;
  };
  Machine on = machine(2048);
  on.alignment = Bytes{512};
  on.h2d = on.d2h = {10'000'000, nanoseconds{0}};
  const Trace all = program(true);
  const Result<PlanWithWays> of_all = plan_with_ways(all, on);
  const Result<PlanWithWays> of_some = plan_with_ways(program(false), on);
  REQUIRE(of_all);
  REQUIRE(of_some);
  // What is planned for the program with one tensor less to divide is a plan for this one, too.
  const Result<WrittenTrace> written = with_ways(all, of_some->ways);
  REQUIRE(written);
  REQUIRE(validate(written->trace, of_some->plan).empty());
  CHECK_FALSE(of_some->ways.pieces.empty());
  CHECK(of_all->plan.predicted.lower_bound <= of_some->plan.predicted.iteration);
  CHECK_FALSE(of_all->ways.pieces.empty());
  CHECK(of_all->plan.predicted.iteration <= of_some->plan.predicted.iteration);
}

TEST_CASE("divisions are left out where an operation's bundle does not fit because of them") {
  // Each takes 1024 bytes as a whole, and 2560 in ten pieces; of the third, two operations use a half each.
  Trace trace;
  trace.tensors = {{"a", Bytes{1000}, TensorKind::persistent, 0},
                   {"b", Bytes{1000}, TensorKind::persistent, 0},
                   {"c", Bytes{1000}, TensorKind::persistent, 0}};
  const auto reads = [&](std::vector<TensorId> tensors) {
    TraceOperation operation;
    operation.duration = nanoseconds{10};
    operation.reads = std::move(tensors);
    operation.in_pieces = true;
    trace.operations.push_back(std::move(operation));
  };
  reads({id(0), id(1)});
  reads({id(2)});
  reads({id(0), id(2)});
  trace.ranges = {{op(1), id(2), Bytes{0}, Bytes{500}}, {op(2), id(2), Bytes{500}, Bytes{500}}};
  Machine on = machine(0);
  on.alignment = Bytes{256};
  const TensorPieces a{id(0), edges(100, 1000)};
  const TensorPieces b{id(1), edges(100, 1000)};
  const TensorPieces c{id(2), edges(500, 1000)};
  const auto fitting = [&](std::uint64_t budget) {
    on.device_budget = Bytes{budget};
    return planning::pieces_that_fit(trace, on, {a, b, c});
  };
  CHECK(fitting(5120) == std::vector{a, b, c});
  CHECK(fitting(5119) == std::vector{a, c});
  CHECK(fitting(3584) == std::vector{a, c});
  CHECK(fitting(3583) == std::vector{c});
  CHECK(fitting(2048) == std::vector{c});
  CHECK(fitting(1000) == std::vector{c});  // nothing helps: c needs 512 bytes in pieces, and 1024 as a whole
}

}  // namespace swapmm::test::pieces_test
