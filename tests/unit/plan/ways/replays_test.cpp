// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

#include <swapmm/plan/planners.hpp>
#include <swapmm/plan/v2/validate.hpp>
#include <swapmm/plan/v2/ways.hpp>
#include <swapmm/plan/validate.hpp>
#include <swapmm/plan/ways.hpp>
#include <swapmm/plan/ways/bound.hpp>
#include <swapmm/plan/ways/choices.hpp>
#include <swapmm/plan/ways/program/history.hpp>
#include <swapmm/plan/ways/program/pieces.hpp>

#include "support/bound_of_ways.hpp"

namespace swapmm::test::replays_test {
using std::chrono::nanoseconds;

constexpr TensorId id(std::uint32_t i) { return static_cast<TensorId>(i); }
constexpr OperationId op(std::uint32_t i) { return static_cast<OperationId>(i); }

TraceOperation operation(std::string name, std::int64_t time, std::vector<TensorId> reads, std::vector<TensorId> writes,
                         bool replayable = true) {
  TraceOperation made;
  made.name = std::move(name);
  made.duration = nanoseconds{time};
  made.reads = std::move(reads);
  made.writes = std::move(writes);
  made.replayable = replayable;
  return made;
}

/// x -> a -> b -> c, and back: each of c, b and a is needed once more. Copies of 100 bytes take 100 ns.
Trace chain() {
  Trace trace;
  trace.name = "chain";
  trace.tensors = {{"x", Bytes{100}, TensorKind::persistent, 0},
                   {"a", Bytes{100}, TensorKind::transient, 0},
                   {"b", Bytes{100}, TensorKind::transient, 0},
                   {"c", Bytes{100}, TensorKind::transient, 0},
                   {"y", Bytes{100}, TensorKind::transient, 0}};
  trace.operations = {operation("a", 10, {id(0)}, {id(1)}),
                      operation("b", 10, {id(1)}, {id(2)}),
                      operation("c", 10, {id(2)}, {id(3)}),
                      operation("use c", 10, {id(3)}, {id(4)}, false),
                      operation("use b", 10, {id(2)}, {id(4)}, false),
                      operation("use a", 10, {id(1)}, {id(4)}, false)};
  return trace;
}

Machine machine(std::uint64_t budget, std::uint64_t bytes_per_second = 1'000'000'000) {
  Machine made;
  made.name = "m";
  made.device_budget = Bytes{budget};
  made.alignment = Bytes{1};
  made.h2d = made.d2h = {bytes_per_second, nanoseconds{0}};
  return made;
}

std::vector<std::string> names(const Trace& trace) {
  std::vector<std::string> list;
  for (const TraceOperation& each : trace.operations) list.push_back(each.name);
  return list;
}

TEST_CASE("replays are written out before the operation that needs them, in the order of the program") {
  Trace trace = chain();
  trace.host_reads = {{id(4), op(4)}};
  const std::vector<Replay> replays = {{op(1), op(5)}, {op(0), op(5)}, {op(1), op(4)}, {op(1), op(4)}};
  const Result<WrittenTrace> replayed = with_ways(trace, {replays, {}});
  REQUIRE(replayed);
  CHECK(names(replayed->trace) == std::vector<std::string>{"a", "b", "c", "use c", "b", "use b", "a", "b", "use a"});
  constexpr auto operation = WrittenStep::Kind::operation;
  constexpr auto replay = WrittenStep::Kind::replay;
  CHECK(replayed->steps == std::vector<WrittenStep>{{operation, 0},
                                                    {operation, 1},
                                                    {operation, 2},
                                                    {operation, 3},
                                                    {replay, 1},
                                                    {operation, 4},
                                                    {replay, 0},
                                                    {replay, 1},
                                                    {operation, 5}});
  CHECK(replayed->trace.host_reads.front().after_operation == op(5));
  CHECK_FALSE(needs_version_2(replayed->trace));
  CHECK(check_trace(replayed->trace));
}

/// x -> a, which is updated twice, the second time with b -> c; then c, b and a are needed once more.
Trace updated_chain() {
  Trace trace = chain();
  TraceOperation first = operation("a in place", 10, {}, {});
  first.updates = {id(1)};
  TraceOperation second = operation("a and b", 10, {id(2)}, {});
  second.updates = {id(1)};
  trace.operations = {operation("a", 10, {id(0)}, {id(1)}),
                      first,
                      operation("b", 10, {id(0)}, {id(2)}),
                      second,
                      operation("c", 10, {id(2)}, {id(3)}),
                      operation("use c", 10, {id(3)}, {id(4)}, false),
                      operation("use b", 10, {id(2)}, {id(4)}, false),
                      operation("use a", 10, {id(1)}, {id(4)}, false)};
  return trace;
}

TEST_CASE("operations that update a tensor run again together with those that gave it its value") {
  const Trace trace = updated_chain();
  const planning::ValueHistory history(trace);
  using Group = std::vector<std::uint32_t>;
  for (const std::uint32_t member : {0U, 1U, 3U}) CHECK(history.group(member, 7) == Group{0, 1, 3});
  CHECK(history.group(1, 3) == Group{0, 1});  // the value that the second update needs
  CHECK(history.group(0, 1) == Group{0});
  CHECK(history.group(2, 7) == Group{2});
  CHECK(history.group(4, 4).empty());
  const auto accepts = [&](const std::vector<Replay>& replays) { return with_ways(trace, {replays, {}}).has_value(); };
  CHECK(accepts({{op(0), op(7)}, {op(1), op(7)}, {op(3), op(7)}}));
  CHECK_FALSE(accepts({{op(0), op(7)}, {op(1), op(7)}}));
  CHECK_FALSE(accepts({{op(1), op(7)}, {op(3), op(7)}}));
  CHECK_FALSE(accepts({{op(0), op(7)}, {op(1), op(6)}, {op(3), op(7)}}));

  Trace between = trace;  // what reads the value in between cannot be repeated
  between.operations[2].reads = {id(1)};
  CHECK(planning::ValueHistory(between).group(2, 7).empty());
  CHECK(planning::ValueHistory(between).group(2, 3) == Group{2});
  Trace not_all = trace;
  not_all.operations[1].replayable = false;
  CHECK(planning::ValueHistory(not_all).group(0, 7).empty());
  CHECK(planning::ValueHistory(not_all).group(3, 7).empty());
  Trace kept = trace;
  kept.tensors[1].kind = TensorKind::persistent;
  CHECK(planning::ValueHistory(kept).group(3, 7).empty());
  Trace changed = trace;  // an input of the second update has another value by then
  changed.operations[6].updates = {id(2)};
  changed.operations[6].reads.clear();
  CHECK(planning::ValueHistory(changed).group(0, 7).empty());
}

TEST_CASE("a value that was updated many times runs again as a whole, in little time") {
  constexpr std::uint32_t updates = 100'000;
  Trace trace = chain();
  trace.operations = {operation("a", 10, {id(0)}, {id(1)})};
  for (std::uint32_t i = 0; i < updates; ++i) {
    trace.operations.push_back(operation("in place", 10, {}, {}));
    trace.operations.back().updates = {id(1)};
  }
  trace.operations.push_back(operation("use a", 10, {id(1)}, {id(4)}, false));
  const planning::ValueHistory history(trace);
  CHECK(history.group(updates / 2, updates + 1).size() == updates + 1);
  CHECK(history.group(0, updates / 2).size() == updates / 2);
  WaysBack ways;
  for (std::uint32_t i = 0; i <= updates; ++i) ways.replays.push_back({op(i), op(updates + 1)});
  const Result<WrittenTrace> written = with_ways(trace, ways);
  REQUIRE(written);
  CHECK(written->trace.operations.size() == 2 * updates + 3);
  ways.replays.erase(ways.replays.begin() + 5);
  CHECK_FALSE(with_ways(trace, ways));
}

TEST_CASE("a value of a group that is needed for another one of its members") {
  Trace trace = chain();  // "a" makes a and c, "b" makes b of a, and c is updated with b
  trace.operations = {operation("x", 10, {id(0)}, {id(4)}),       operation("a", 10, {id(0)}, {id(1), id(3)}),
                      operation("b", 10, {id(1)}, {id(2)}),       operation("c", 10, {id(2)}, {}),
                      operation("use", 10, {id(4)}, {}, false),   operation("use c", 10, {id(3)}, {}, false),
                      operation("use b", 10, {id(2)}, {}, false), operation("use a", 10, {id(1)}, {}, false)};
  trace.operations[3].updates = {id(3)};
  REQUIRE(check_trace(trace));
  for (const std::uint64_t budget : {300U, 350U, 400U}) {
    CHECK(plan_checkpoint_units(trace, machine(budget, 1'000'000)));
    CHECK(plan_with_ways(trace, machine(budget, 1'000'000)));
  }
  const planning::ValueHistory history(trace);
  CHECK(history.group(1, 5) == std::vector<std::uint32_t>{1, 3});
}

TEST_CASE("a plan makes updated values again, and the validators agree with it") {
  const Trace trace = updated_chain();
  const Machine slow = machine(300, 1'000'000);
  const Result<PlanWithWays> made = plan_with_ways(trace, slow);
  REQUIRE(made);
  CHECK(std::ranges::count(made->ways.replays, op(3), &Replay::operation) == 1);
  const Result<WrittenTrace> written = with_ways(trace, made->ways);
  REQUIRE(written);
  CHECK(validate(written->trace, made->plan).empty());
  const Result<v2::Plan> full = v2::from_ways(trace, *made);
  REQUIRE(full);
  CHECK(v2::validate(trace, *full).empty());
  Trace copies = trace;
  for (TraceOperation& each : copies.operations) each.replayable = false;
  const Result<Plan> copied = best_planner().make(copies, slow, {});
  REQUIRE(copied);
  CHECK(made->plan.predicted.iteration < copied->predicted.iteration);
  CHECK(made->plan.predicted.iteration >= made->plan.predicted.lower_bound);
}

TEST_CASE("a value lingers behind the last step that uses it, a replay included") {
  Trace trace = chain();
  trace.lingering = {{id(1), op(5), 6}, {id(2), op(4), 5}};
  REQUIRE(check_trace(trace));
  const std::vector<Replay> replays = {{op(1), op(4)}, {op(0), op(5)}, {op(1), op(5)}};
  const Result<WrittenTrace> written = with_ways(trace, {replays, {}});
  REQUIRE(written);
  REQUIRE(names(written->trace) == std::vector<std::string>{"a", "b", "c", "use c", "b", "use b", "a", "b", "use a"});
  CHECK(written->trace.lingering == std::vector<LingeringValue>{{id(1), op(8), 9}, {id(2), op(7), 8}});
  CHECK(check_trace(written->trace));

  // What runs again after the value is certainly dead makes it once more: then it is dead at once.
  trace.operations.push_back(operation("use a", 10, {id(1)}, {id(4)}, false));
  trace.lingering = {{id(2), op(4), 5}};
  REQUIRE(check_trace(trace));
  const Result<WrittenTrace> later = with_ways(trace, {{{op(1), op(6)}}, {}});
  REQUIRE(later);
  CHECK(later->trace.lingering.empty());
  const Result<WrittenTrace> none = with_ways(trace, {});
  REQUIRE(none);
  CHECK(none->trace.lingering == trace.lingering);
}

TEST_CASE("a plan with replays keeps what lingers, and is faster than copies") {
  Trace trace = chain();
  trace.lingering = {{id(1), op(5), 6}, {id(2), op(4), 5}};
  const Machine slow = machine(300, 1'000'000);
  const Result<PlanWithWays> made = plan_with_ways(trace, slow);
  REQUIRE(made);
  CHECK(!made->ways.replays.empty());
  const Result<WrittenTrace> written = with_ways(trace, made->ways);
  REQUIRE(written);
  CHECK(!written->trace.lingering.empty());
  CHECK(validate(written->trace, made->plan).empty());
  for (TraceOperation& each : trace.operations) each.replayable = false;
  const Result<Plan> copies = best_planner().make(trace, slow, {});
  REQUIRE(copies);
  CHECK(made->plan.predicted.iteration < copies->predicted.iteration);
}

TEST_CASE("an input that comes late still comes before the same operation") {
  Trace trace = chain();
  trace.tensors.push_back({"late", Bytes{8}, TensorKind::input, 5});
  trace.operations[5].reads.push_back(id(5));
  const std::vector<Replay> replays = {{op(0), op(5)}, {op(1), op(4)}};
  const Result<WrittenTrace> replayed = with_ways(trace, {replays, {}});
  REQUIRE(replayed);
  CHECK(names(replayed->trace) == std::vector<std::string>{"a", "b", "c", "use c", "b", "use b", "a", "use a"});
  CHECK(replayed->trace.tensors[5].available_from == 6);
  CHECK(check_trace(replayed->trace));
}

TEST_CASE("what may not run again is refused, with a reason") {
  const auto refuses = [](const Trace& trace, Replay replay) {
    const Result<WrittenTrace> replayed = with_ways(trace, {{replay}, {}});
    return !replayed && !replayed.problem().message.empty();
  };
  const Trace trace = chain();
  CHECK_FALSE(refuses(trace, {op(0), op(5)}));
  CHECK(refuses(trace, {op(3), op(5)}));   // not replayable
  CHECK(refuses(trace, {op(2), op(2)}));   // not later
  CHECK(refuses(trace, {op(2), op(1)}));   // earlier
  CHECK(refuses(trace, {op(2), op(99)}));  // not there
  Trace changed = chain();
  changed.operations[3].updates = {id(0)};  // what "a" reads is no longer what it was
  CHECK(refuses(changed, {op(0), op(4)}));
  CHECK_FALSE(refuses(changed, {op(0), op(3)}));
  Trace rewritten = chain();
  rewritten.operations[4].reads.clear();
  rewritten.operations[4].updates = {id(2)};  // "b" has another value behind it
  CHECK(refuses(rewritten, {op(1), op(5)}));
  CHECK_FALSE(refuses(rewritten, {op(1), op(4)}));
  Trace updating = chain();
  updating.operations[1].writes.clear();
  updating.operations[1].updates = {id(2)};
  updating.tensors[2].kind = TensorKind::persistent;
  CHECK(refuses(updating, {op(1), op(5)}));
  Trace kept = chain();
  kept.tensors[1].kind = TensorKind::persistent;  // the next iteration may need it
  CHECK(refuses(kept, {op(0), op(5)}));
  Trace read = chain();
  read.host_reads = {{id(1), op(1)}};
  CHECK(refuses(read, {op(0), op(5)}));
  Trace engines = chain();
  engines.engines = {"gpu"};
  engines.operations[0].engine = 0;
  const Result<WrittenTrace> written = with_ways(engines, {{{op(0), op(5)}}, {}, {}});
  REQUIRE(written);
  REQUIRE(written->steps[5].kind == WrittenStep::Kind::replay);
  CHECK(written->trace.operations[5].engine == 0);  // where it ran
}

TEST_CASE("where copies take long, values are made again; where they are quick, they are copied") {
  const Trace trace = chain();
  const Result<PlanWithWays> slow = plan_with_ways(trace, machine(400, 100'000'000));
  REQUIRE(slow);
  CHECK(slow->ways.replays.size() == 1);  // one of "a" and "b"
  CHECK(slow->plan.predicted.iteration == nanoseconds{70});
  CHECK(slow->plan.predicted.lower_bound >= nanoseconds{60});
  const Result<PlanWithWays> quick = plan_with_ways(trace, machine(400, 100'000'000'000));
  REQUIRE(quick);
  CHECK(quick->ways.empty());
  CHECK(quick->plan.predicted.iteration < nanoseconds{66});
}

TEST_CASE("in version 2 replays are commands, and the plan is valid and takes as long") {
  const Trace trace = chain();
  const Result<PlanWithWays> made = plan_with_ways(trace, machine(400, 100'000'000));
  REQUIRE(made);
  const Result<v2::Plan> plan = v2::from_ways(trace, *made);
  REQUIRE(plan);
  CHECK(plan->trace_digest == digest(trace));
  CHECK(v2::validate(trace, *plan).empty());
  const v2::Command& again = plan->commands.back();
  CHECK(again.kind == v2::CommandKind::run);
  CHECK(again.operation == made->ways.replays.front().operation);
  CHECK(again.position == index(made->ways.replays.front().before));
  PlanWithWays other = *made;
  other.ways = {};
  CHECK_FALSE(v2::from_ways(trace, other));
}

TEST_CASE("on the way back nothing is taken for granted") {
  const Trace trace = chain();
  const auto planned = [&](std::uint64_t bytes_per_second) {
    const Result<PlanWithWays> made = plan_with_ways(trace, machine(400, bytes_per_second));
    REQUIRE(made);
    Result<v2::Plan> plan = v2::from_ways(trace, *made);
    REQUIRE(plan);
    REQUIRE(v2::to_ways(trace, *plan));
    return *std::move(plan);
  };
  const v2::Plan copies = planned(100'000'000'000);
  const auto copy = std::ranges::find(copies.commands, v2::CommandKind::copy, &v2::Command::kind);
  REQUIRE(copy != copies.commands.end());
  const auto number = static_cast<std::size_t>(copy - copies.commands.begin());
  for (const std::int32_t operation : {6, 99, -7, -99, INT32_MIN, INT32_MAX}) {
    v2::Plan waiting = copies;
    waiting.commands[number].after = {{Wait::On::operation, false, operation}};
    const Result<PlanWithWays> back = v2::to_ways(trace, waiting);
    REQUIRE_FALSE(back);
    CHECK(back.problem().message.find("waits for an operation that is not there") != std::string::npos);
  }
  v2::Plan links = copies;
  links.predicted.links.resize(9);
  CHECK_FALSE(v2::check_plan(links));
  CHECK_FALSE(v2::to_ways(trace, links));
  v2::Plan peaks = copies;
  peaks.predicted.peaks.resize(1);
  CHECK_FALSE(v2::check_plan(peaks));
  v2::Plan twice = planned(100'000'000);
  const auto run = std::ranges::find(twice.commands, v2::CommandKind::run, &v2::Command::kind);
  REQUIRE(run != twice.commands.end());
  twice.commands.push_back(*run);
  CHECK_FALSE(v2::to_ways(trace, twice));
}

TEST_CASE("the bound by hand: the cheapest values are made again until the copies of the rest take no longer") {
  const Trace trace = chain();
  const auto bound = [&](std::uint64_t budget, std::uint64_t bytes_per_second) {
    return bound_of_ways(trace, machine(budget, bytes_per_second));
  };
  // While "use c" runs, all are live: 100 bytes too many for 400. Copies alone take 1000 ns for them. Making z of them
  // again takes z / 10 ns: 60 + z / 10 = 10 x (100 - z) for z = 940 / 10.1.
  CHECK(bound(400, 100'000'000) == nanoseconds{69});
  // 200 bytes too many: z = 1940 / 10.1, of both a and b. "x" cannot be made again.
  CHECK(bound(300, 100'000'000) == nanoseconds{79});
  CHECK(bound(500, 100'000'000) == nanoseconds{60});
  CHECK(bound(400, 10'000'000'000) == nanoseconds{60});
}

/// Chooses ways for a trace on a machine, which it keeps.
class Chooser {
 public:
  Chooser(Trace trace, const Machine& on)
      : trace_(std::move(trace)),
        plain_(planning::without_ways(trace_)),
        machine_(on),
        planning_(case_of(plain_, machine_)),
        history_(trace_),
        choice_(trace_, history_, planning_) {}
  Chooser(const Chooser&) = delete;
  Chooser& operator=(const Chooser&) = delete;
  planning::WayChoice* operator->() { return &choice_; }

 private:
  static planning::PlanningCase case_of(const Trace& trace, const Machine& on) {
    Result<planning::PlanningCase> made = planning::make_planning_case(trace, on);
    REQUIRE(made);
    return *std::move(made);
  }

  Trace trace_;
  Trace plain_;
  Machine machine_;
  planning::PlanningCase planning_;
  planning::ValueHistory history_;
  planning::WayChoice choice_;
};

TEST_CASE("a chain is made again as a whole if that is cheaper, and what is there already is not") {
  Chooser choice(chain(), machine(200));
  CHECK(choice->choose({.copy_price = 0, .least_away = 0}).empty());
  // "b" needs "a", which is needed later anyway, and made again for it. Then it is not there while "use b" runs.
  CHECK(choice->choose({.copy_price = 0.15, .least_away = 0}).replays ==
        std::vector<Replay>{{op(0), op(4)}, {op(1), op(4)}, {op(0), op(5)}});
  CHECK(choice->choose({.copy_price = 0.15, .least_away = 2}).replays == std::vector<Replay>{{op(0), op(5)}});
  CHECK(choice->prices() == std::vector<double>{0.1});
}

TEST_CASE("copies of early values may be dearer than those of late ones, or cheaper") {
  Trace trace;
  trace.name = "early and late";
  trace.tensors = {{"early", Bytes{100}, TensorKind::transient, 0},
                   {"large", Bytes{200}, TensorKind::transient, 0},
                   {"late", Bytes{100}, TensorKind::transient, 0},
                   {"large too", Bytes{200}, TensorKind::transient, 0}};
  trace.operations = {operation("make early", 10, {}, {id(0)}),
                      operation("large", 500, {}, {id(1)}, false),
                      operation("use large", 10, {id(1)}, {}, false),
                      operation("use early", 10, {id(0)}, {}, false),
                      operation("make late", 10, {}, {id(2)}),
                      operation("large too", 500, {}, {id(3)}, false),
                      operation("use large too", 10, {id(3)}, {}, false),
                      operation("use late", 10, {id(2)}, {}, false)};
  Chooser choice(trace, machine(250));
  const Replay early{op(0), op(3)};
  const Replay late{op(4), op(7)};
  // A price of p per byte makes a copy of 100 bytes, out and in, cost 100 p; to make the value again costs 10.
  CHECK(choice->choose({.copy_price = 0.11, .least_away = 0}).replays == std::vector<Replay>{early, late});
  CHECK(choice->choose({.copy_price = 0.09, .least_away = 0}).replays.empty());
  // "early" is made at the very beginning: e^tilt times as dear. "late" is made in the middle: as dear as before.
  CHECK(choice->choose({.copy_price = 0.09, .tilt = 0.2, .least_away = 0}).replays == std::vector<Replay>{early});
  CHECK(choice->choose({.copy_price = 0.11, .tilt = -0.2, .least_away = 0}).replays == std::vector<Replay>{late});
}

TEST_CASE("the bound: a value that is made again after it may be lost does not linger before") {
  Trace trace;
  trace.name = "lingering";
  trace.tensors = {{"t", Bytes{60}, TensorKind::transient, 0}, {"y", Bytes{100}, TensorKind::transient, 0}};
  trace.operations = {operation("make t", 10, {}, {id(0)}), operation("use t", 10, {id(0)}, {}, false),
                      operation("make y", 10, {}, {id(1)}, false), operation("nothing", 10, {}, {}, false)};
  trace.lingering = {{id(0), op(1), 3}};
  const Machine on = machine(100, 1'000'000);  // a copy of t takes 60,000 ns
  const auto written = with_ways(trace, {{{op(0), op(3)}}, {}, {}});
  REQUIRE(written);
  const Result<Plan> plan = make_plan("best", written->trace, on);
  REQUIRE(plan);
  CHECK(plan->predicted.iteration == nanoseconds{50});
  CHECK(bound_of_ways(trace, on) <= nanoseconds{50});
  trace.operations[0].replayable = false;
  const Result<Plan> copies = make_plan("best", trace, on);
  REQUIRE(copies);
  const nanoseconds bound = bound_of_ways(trace, on);
  CHECK(bound > nanoseconds{60'000});
  CHECK(bound <= copies->predicted.iteration);
}

TEST_CASE("the bound for tensors in pieces: those that lie next to each other need no padding between them") {
  Trace trace;
  trace.name = "pieces";
  trace.tensors = {{"x", Bytes{1024}, TensorKind::persistent, 0}, {"y", Bytes{1024}, TensorKind::transient, 0}};
  trace.operations = {operation("first part", 10, {}, {}, false), operation("rest", 10, {}, {}, false),
                      operation("y", 10, {}, {id(1)}, false)};
  trace.operations[0].updates = {id(0)};
  trace.operations[1].updates = {id(0)};
  for (TraceOperation& one : trace.operations) one.in_pieces = true;
  trace.ranges = {{op(0), id(0), Bytes{0}, Bytes{100}}, {op(1), id(0), Bytes{100}, Bytes{924}}};
  Machine on = machine(2048, 1'000'000);
  on.alignment = Bytes{256};
  const auto made = plan_with_ways(trace, on);
  REQUIRE(made);
  CHECK(made->plan.predicted.iteration == nanoseconds{30});
  const auto divided = planning::with_pieces(trace, planning::possible_pieces(trace, on));
  REQUIRE(divided);
  REQUIRE(divided->trace.tensors.size() > trace.tensors.size());
  CHECK(bound_of_ways(divided->trace, on, planning::BoundFor::tensors) == nanoseconds{30});
  CHECK(bound_of_ways(divided->trace, on) > nanoseconds{100'000});  // 100 bytes go
}

}  // namespace swapmm::test::replays_test
