// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/plan/v2/planners.hpp>
#include <swapmm/plan/v2/simulate.hpp>
#include <swapmm/plan/v2/validate.hpp>
#include <swapmm/plan/v2/ways.hpp>
#include <swapmm/plan/ways.hpp>

namespace swapmm::test::codings_test {
using std::chrono::nanoseconds;

constexpr TensorId id(std::uint32_t i) { return static_cast<TensorId>(i); }
constexpr OperationId op(std::uint32_t i) { return static_cast<OperationId>(i); }

TraceOperation operation(std::string name, std::vector<TensorId> reads, std::vector<TensorId> writes) {
  TraceOperation made;
  made.name = std::move(name);
  made.duration = nanoseconds{100};
  made.reads = std::move(reads);
  made.writes = std::move(writes);
  return made;
}

/// "a" is made, used, and used again three operations later, when two others have had its place. Its form takes 60 of
/// its 100 bytes; 20 are expected.
Trace program() {
  Trace trace;
  trace.name = "program";
  trace.tensors = {{"a", Bytes{100}, TensorKind::transient, 0},
                   {"b", Bytes{100}, TensorKind::transient, 0},
                   {"c", Bytes{100}, TensorKind::transient, 0}};
  trace.operations = {operation("make a", {}, {id(0)}), operation("a to b", {id(0)}, {id(1)}),
                      operation("b to c", {id(1)}, {id(2)}), operation("c to b", {id(2)}, {id(1)}),
                      operation("a and b", {id(0), id(1)}, {})};
  trace.forms = {{id(0), "zeros", Bytes{60}, Bytes{20}, nanoseconds{7}, nanoseconds{5}}};
  return trace;
}

Machine machine(std::uint64_t budget, std::uint64_t bytes_per_second) {
  Machine made;
  made.name = "m";
  made.device_budget = Bytes{budget};
  made.alignment = Bytes{1};
  made.h2d = made.d2h = {bytes_per_second, nanoseconds{0}};
  return made;
}

TEST_CASE("a coding is written out as an operation that encodes, one that decodes, and a tensor between them") {
  const Trace trace = program();
  const Result<WrittenTrace> written = with_ways(trace, {{}, {{id(0), 0, op(1), op(4)}, {id(0), 0, op(1), op(4)}}});
  REQUIRE(written);
  CHECK(check_trace(written->trace));
  CHECK_FALSE(needs_version_2(written->trace));
  REQUIRE(written->trace.tensors.size() == 4);
  const TraceTensor& encoded = written->trace.tensors[3];
  CHECK(encoded.name == "a zeros");
  CHECK(encoded.bytes == Bytes{60});
  CHECK(copied_bytes(encoded) == Bytes{20});
  CHECK(written->encoded == std::vector<EncodedTensor>{{id(0), 0}});
  REQUIRE(written->trace.operations.size() == 7);
  const TraceOperation& encode = written->trace.operations[2];
  CHECK(encode.name == "encode a zeros");
  CHECK(encode.duration == nanoseconds{7});
  CHECK(encode.reads == std::vector{id(0)});
  CHECK(encode.writes == std::vector{id(3)});
  const TraceOperation& decode = written->trace.operations[5];
  CHECK(decode.name == "decode a zeros");
  CHECK(decode.duration == nanoseconds{5});
  CHECK(decode.reads == std::vector{id(3)});
  CHECK(decode.writes == std::vector{id(0)});
  CHECK(written->steps[2] == WrittenStep{WrittenStep::Kind::encode, 0});
  CHECK(written->steps[5] == WrittenStep{WrittenStep::Kind::decode, 0});
}

TEST_CASE("codings behind the same operation share their encoding") {
  Trace trace = program();
  trace.operations.push_back(operation("b to c", {id(1)}, {id(2)}));
  trace.operations.push_back(operation("a again", {id(0)}, {}));
  const Result<WrittenTrace> written = with_ways(trace, {{}, {{id(0), 0, op(1), op(6)}, {id(0), 0, op(1), op(4)}}});
  REQUIRE(written);
  std::vector<std::string> names;
  for (const TraceOperation& each : written->trace.operations) names.push_back(each.name);
  CHECK(names == std::vector<std::string>{"make a", "a to b", "encode a zeros", "b to c", "c to b", "decode a zeros",
                                          "a and b", "b to c", "decode a zeros", "a again"});
}

TEST_CASE("what may not be encoded is refused, with a reason") {
  const auto refuses = [](const Trace& trace, Coding coding) {
    const Result<WrittenTrace> written = with_ways(trace, {{}, {coding}});
    return !written && !written.problem().message.empty();
  };
  const Coding good{id(0), 0, op(1), op(4)};
  CHECK_FALSE(refuses(program(), good));
  CHECK(refuses(program(), {id(0), 1, op(1), op(4)}));  // no such form
  CHECK(refuses(program(), {id(1), 0, op(1), op(4)}));  // of that tensor there is none
  CHECK(refuses(program(), {id(0), 0, op(4), op(4)}));  // not later
  CHECK(refuses(program(), {id(0), 0, op(1), op(5)}));  // not there
  Trace late = program();
  late.operations[0].writes.clear();
  late.operations[2].writes = {id(0), id(2)};
  late.operations[1].reads.clear();
  CHECK(refuses(late, good));  // nothing has given it before
  Trace changed = program();
  changed.operations[2].updates = {id(0)};
  CHECK(refuses(changed, good));
  Trace kept = program();
  kept.tensors[0].kind = TensorKind::persistent;  // the next iteration may need it
  CHECK(refuses(kept, good));
  Trace read = program();
  read.host_reads = {{id(0), op(1)}};
  CHECK(refuses(read, good));
}

TEST_CASE("what is encoded and decoded next to an operation runs on its engine") {
  Trace on_engines = program();
  on_engines.engines = {"one", "two"};
  const Coding good{id(0), 0, op(1), op(4)};
  on_engines.operations[1].engine = 1;
  on_engines.operations[4].engine = 0;
  const Result<WrittenTrace> written = with_ways(on_engines, {{}, {good}, {}});
  REQUIRE(written);
  CHECK(written->trace.engines == on_engines.engines);
  REQUIRE(written->steps[2].kind == WrittenStep::Kind::encode);
  CHECK(written->trace.operations[2].engine == 1);
  REQUIRE(written->steps[5].kind == WrittenStep::Kind::decode);
  CHECK(written->trace.operations[5].engine == 0);
}

TEST_CASE("over a slow link a value leaves encoded, and the plan in version 2 is valid and takes as long") {
  const Trace trace = program();
  // A copy of the whole takes 500 ns each way, where "b to c" and "c to b" take 200.
  const Machine slow = machine(260, 200'000'000);
  const Result<PlanWithWays> made = plan_with_ways(trace, slow);
  REQUIRE(made);
  REQUIRE(made->ways.codings.size() == 1);
  CHECK(made->ways.codings.front() == Coding{id(0), 0, op(1), op(4)});
  // In 60 bytes it may stay: no copy is left.
  CHECK(made->plan.predicted.iteration == nanoseconds{512});
  CHECK(made->plan.predicted.h2d == Bytes{0});
  CHECK(made->plan.predicted.lower_bound == nanoseconds{500});

  // Beside "b" and a larger "c" it may not: its 20 bytes leave and come back, in 100 ns each, which nothing hides.
  Trace larger = program();
  larger.tensors[2].bytes = Bytes{130};
  const Result<PlanWithWays> copied = plan_with_ways(larger, slow);
  REQUIRE(copied);
  REQUIRE(copied->ways.codings.size() == 1);
  CHECK(copied->plan.predicted.iteration == nanoseconds{712});
  CHECK(copied->plan.predicted.h2d == Bytes{20});
  CHECK(copied->plan.predicted.d2h == Bytes{20});
  const Result<v2::Plan> plan = v2::from_ways(larger, *copied);
  REQUIRE(plan);
  CHECK(plan->forms == std::vector<std::string>{"zeros"});
  CHECK(v2::validate(larger, *plan).empty());
  const v2::Simulation predicted = v2::simulate(larger, *plan);
  CHECK(predicted.iteration == copied->plan.predicted.iteration);
  CHECK(predicted.links == std::vector<Bytes>{Bytes{20}, Bytes{20}});
}

TEST_CASE("ways that are not allowed are not used") {
  const Trace trace = program();
  const v2::Machine slow = v2::from_version_1(machine(260, 200'000'000));
  const auto codings = [&](const PlanningOptions& options) {
    const Result<v2::Plan> plan = v2::make_plan("best", trace, slow, options);
    REQUIRE(plan);
    CHECK(v2::validate(trace, *plan).empty());
    CHECK(plan->predicted.lower_bound <= plan->predicted.iteration);
    return plan->forms.size();
  };
  CHECK(codings({}) == 1);
  PlanningOptions copies;
  copies.ways.compress = false;
  CHECK(codings(copies) == 0);
}

/// Two values are away at a time. "d" may be made again in 60 ns; copies take 1 ns per byte.
Trace with_value_on_the_way(std::optional<Bytes> copied) {
  Trace trace;
  trace.name = "on the way";
  trace.tensors = {{"d", Bytes{100}, TensorKind::transient, 0, copied},
                   {"b", Bytes{100}, TensorKind::transient, 0},
                   {"c", Bytes{100}, TensorKind::transient, 0}};
  trace.operations = {operation("make d", {}, {id(0)}), operation("d to b", {id(0)}, {id(1)}),
                      operation("b to c", {id(1)}, {id(2)}), operation("c to b", {id(2)}, {id(1)}),
                      operation("d and b", {id(0), id(1)}, {})};
  trace.operations[0].duration = nanoseconds{60};
  trace.operations[0].replayable = true;
  return trace;
}

Machine machine_for_two() {
  Machine machine;
  machine.device_budget = Bytes{200};
  machine.alignment = Bytes{1};
  machine.h2d = machine.d2h = {1'000'000'000, nanoseconds{0}};
  return machine;
}

TEST_CASE("a value that is encoded on its way is copied, and one that is not is made again") {
  const Result<PlanWithWays> plain = plan_with_ways(with_value_on_the_way(std::nullopt), machine_for_two());
  REQUIRE(plain);
  CHECK(plain->ways.replays == std::vector<Replay>{{op(0), op(4)}});
  CHECK(plain->plan.predicted.iteration == nanoseconds{520});
  const Result<PlanWithWays> encoded = plan_with_ways(with_value_on_the_way(Bytes{20}), machine_for_two());
  REQUIRE(encoded);
  CHECK(encoded->ways.empty());
  CHECK(encoded->plan.predicted.iteration < nanoseconds{520});
  CHECK(encoded->plan.predicted.lower_bound <= encoded->plan.predicted.iteration);
  CHECK(encoded->plan.predicted.d2h == Bytes{20});
  CHECK(encoded->plan.predicted.h2d == Bytes{20});
}

TEST_CASE("what is encoded on its way has no forms besides, and is not divided") {
  Trace trace = program();
  trace.tensors[0].copied = Bytes{20};
  const Result<WrittenTrace> with_forms = with_ways(trace, {});
  REQUIRE_FALSE(with_forms);
  CHECK(with_forms.problem().message == "tensor 0 is encoded on its way, and has forms besides");
  trace.forms.clear();
  CHECK(with_ways(trace, {}));
  for (TraceOperation& each : trace.operations) each.in_pieces = true;
  const Result<WrittenTrace> divided = with_ways(trace, {{}, {}, {{id(0), {Bytes{50}}}}});
  REQUIRE_FALSE(divided);
  CHECK(divided.problem().message == "tensor 0 is encoded on its way, and cannot be divided");
  CHECK(with_ways(trace, {{}, {}, {{id(1), {Bytes{50}}}}}));
}

}  // namespace swapmm::test::codings_test
