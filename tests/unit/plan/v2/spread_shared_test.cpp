// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/plan/v2/bound.hpp>
#include <swapmm/plan/v2/planners.hpp>
#include <swapmm/plan/v2/schedule/waits.hpp>
#include <swapmm/plan/v2/spread/hand_over.hpp>
#include <swapmm/plan/v2/spread/shared_parts.hpp>
#include <swapmm/plan/v2/spread/spare_memory.hpp>
#include <swapmm/plan/v2/spread/spread_shared.hpp>
#include <swapmm/plan/v2/spread/timeline.hpp>
#include <swapmm/plan/v2/validate.hpp>

namespace swapmm::test::spread_shared_test {

using std::chrono::nanoseconds;
using Kind = v2::CommandKind;

constexpr std::uint64_t one_byte_per_ns = 1'000'000'000;

/// GPUs with a memory each, linked to the host at 1 byte/ns each way, and to each other if `peer` is not 0. An engine
/// for each of `engines`: the number of its memory, the host's is the last one.
v2::Machine machine_of(std::uint32_t gpus, Bytes room, const std::vector<std::uint32_t>& engines,
                       std::uint64_t peer = 0) {
  v2::Machine machine;
  machine.name = "machine";
  for (std::uint32_t g = 0; g < gpus; ++g) {
    machine.memories.push_back({"gpu" + std::to_string(g), room, Bytes{1}, std::nullopt});
  }
  machine.memories.push_back({"host", std::nullopt, Bytes{1}, std::nullopt});
  machine.host = v2::MemoryId{gpus};
  for (std::size_t e = 0; e < engines.size(); ++e) {
    machine.engines.push_back({"e" + std::to_string(e), v2::MemoryId{engines[e]}});
  }
  const auto link = [&](std::uint32_t from, std::uint32_t to, std::uint64_t rate) {
    machine.links.push_back({"l" + std::to_string(from) + std::to_string(to),
                             v2::MemoryId{from},
                             v2::MemoryId{to},
                             rate,
                             nanoseconds{0},
                             std::nullopt,
                             {}});
  };
  for (std::uint32_t g = 0; g < gpus; ++g) {
    link(gpus, g, one_byte_per_ns);
    link(g, gpus, one_byte_per_ns);
  }
  for (std::uint32_t a = 0; a < gpus && peer != 0; ++a) {
    for (std::uint32_t b = 0; b < gpus; ++b) {
      if (a != b) link(a, b, peer);
    }
  }
  return machine;
}

Trace trace_for(const v2::Machine& machine) {
  Trace trace;
  trace.name = "shared";
  for (const v2::Engine& engine : machine.engines) trace.engines.push_back(engine.name);
  return trace;
}

TensorId add(Trace& trace, Bytes bytes, TensorKind kind) {
  trace.tensors.push_back({"t" + std::to_string(trace.tensors.size()), bytes, kind, 0});
  return id_at<TensorId>(trace.tensors.size() - 1);
}

void run(Trace& trace, std::uint32_t engine, std::int64_t time, std::vector<TensorId> reads,
         std::vector<TensorId> writes, std::vector<TensorId> updates = {}) {
  TraceOperation operation{"op", nanoseconds{time}, std::move(reads), std::move(writes), std::move(updates)};
  operation.engine = engine;
  trace.operations.push_back(std::move(operation));
}

v2::Plan planned(const Trace& trace, const v2::Machine& machine, const char* planner = "best") {
  PlanningOptions options;
  options.go_on = [asked = 0](const PlanningProgress& progress) mutable { return ++asked < 600 * progress.part; };
  const Result<v2::Plan> plan = v2::make_plan(planner, trace, machine, options);
  REQUIRE_MESSAGE(plan, plan.problem().message);
  const auto violations = v2::validate(trace, *plan);
  REQUIRE_MESSAGE(violations.empty(), violations.front().message);
  const auto bound = v2::lower_bound(trace, machine);
  REQUIRE(bound);
  CHECK(plan->predicted.iteration >= *bound);
  return *plan;
}

TEST_CASE("A time line has what one memory hands to another, and keeps the order of what accesses a tensor") {
  for (const bool linked : {false, true}) {
    const v2::Machine machine = machine_of(2, Bytes{5000}, {0, 1}, linked ? 4 * one_byte_per_ns : 0);
    Trace trace = trace_for(machine);
    const TensorId value = add(trace, Bytes{1000}, TensorKind::transient);
    const TensorId other = add(trace, Bytes{8}, TensorKind::persistent);
    run(trace, 0, 1000, {}, {value});
    run(trace, 1, 1000, {value}, {});
    run(trace, 0, 1000, {}, {value});  // may not come before its last reader, and need not wait for its end
    run(trace, 0, 10, {value}, {}, {other});
    run(trace, 1, 500, {}, {}, {});
    const Result<v2::planning::Timeline> line = v2::planning::make_timeline(trace, machine);
    REQUIRE(line);
    const nanoseconds came{linked ? 1250 : 3000};
    CHECK(line->spans[1].start == came);
    CHECK(line->spans[2].start == came);
    CHECK(line->spans[3].start == came + nanoseconds{1000});
    CHECK(line->end == came + nanoseconds{1500});
    std::vector<std::uint32_t> order;
    for (const OperationId id : line->order) order.push_back(static_cast<std::uint32_t>(id));
    CHECK(order == std::vector<std::uint32_t>{0, 1, 2, 3, 4});
    std::vector<Span> later = line->spans;
    later[0] = {nanoseconds{100}, nanoseconds{1100}};
    CHECK(v2::planning::make_timeline(trace, machine, later)->spans[1].start == came + nanoseconds{100});
  }
}

TEST_CASE("A time line is in the order of beginnings, and a trace in this order is the same program") {
  const v2::Machine machine = machine_of(1, Bytes{5000}, {0, 0});
  Trace trace = trace_for(machine);
  const TensorId a = add(trace, Bytes{1000}, TensorKind::input);
  const TensorId b = add(trace, Bytes{1000}, TensorKind::input);
  trace.tensors[index(b)].available_from = 2;
  run(trace, 0, 1000, {a}, {});
  run(trace, 0, 1000, {a}, {});
  run(trace, 1, 1, {a}, {});
  run(trace, 1, 1, {b}, {});
  trace.host_reads.push_back({a, OperationId{2}});
  trace.ranges.push_back({OperationId{2}, a, Bytes{0}, Bytes{10}});
  trace.tensors[index(a)].kind = TensorKind::persistent;
  const Result<v2::planning::Timeline> line = v2::planning::make_timeline(trace, machine);
  REQUIRE(line);
  CHECK(line->order == std::vector{OperationId{0}, OperationId{2}, OperationId{1}, OperationId{3}});
  CHECK(line->spans[3].start == nanoseconds{2000});  // the host gives its value at the end of operation 1
  const Trace ordered = v2::planning::in_order(trace, *line).trace;
  CHECK(check_trace(ordered));
  CHECK(ordered.operations[1] == trace.operations[2]);
  CHECK(ordered.tensors[index(b)].available_from == 3);
  CHECK(ordered.host_reads == std::vector{HostRead{a, OperationId{1}}});
  CHECK(ordered.ranges.front().operation == OperationId{1});
}

TEST_CASE("Each memory has a part: what comes from others is an input of it, what goes there is read by the host") {
  const v2::Machine machine = machine_of(1, Bytes{5000}, {0, 1});  // a GPU, and a CPU that works in the host
  Trace trace = trace_for(machine);
  const TensorId weight = add(trace, Bytes{1000}, TensorKind::persistent);
  const TensorId gradient = add(trace, Bytes{400}, TensorKind::transient);
  const TensorId state = add(trace, Bytes{300}, TensorKind::persistent);
  run(trace, 0, 1000, {weight}, {});
  run(trace, 0, 1000, {weight}, {gradient});
  run(trace, 1, 500, {gradient}, {}, {weight, state});
  run(trace, 0, 1000, {weight}, {});
  const Result<v2::planning::Timeline> line = v2::planning::make_timeline(trace, machine);
  REQUIRE(line);
  CHECK(line->spans[3].start == nanoseconds{3900});  // 400 out, 500, 1000 in
  const auto parts = v2::planning::shared_parts(v2::planning::in_order(trace, *line), machine,
                                                v2::planning::WhatLeaves::stays_until_copied);
  REQUIRE(parts);
  REQUIRE(parts->parts.size() == 1);
  const v2::planning::EnginePart& part = parts->parts.front();
  REQUIRE(part.trace.operations.size() == 4);
  CHECK(part.operations == std::vector{OperationId{0}, OperationId{1}, OperationId{3}, OperationId{3}});
  CHECK(part.trace.operations[2].duration == nanoseconds{1900});  // until the new weight is there
  CHECK(part.tensors == std::vector{weight, weight, gradient});
  CHECK(part.trace.tensors[0].kind == TensorKind::input);
  CHECK(part.trace.tensors[0].available_from == 0);
  CHECK(part.trace.tensors[1].kind == TensorKind::input);
  CHECK(part.trace.tensors[1].available_from == 3);
  CHECK(part.trace.tensors[2].kind == TensorKind::transient);
  CHECK(part.trace.operations[3].reads == std::vector{TensorId{1}});
  CHECK(part.trace.operations[2].reads == std::vector{TensorId{2}});  // the gradient stays until it has left
  CHECK(parts->leaving == std::vector{v2::planning::LeavingValue{0, TensorId{2}, 1}});
  CHECK(part.trace.host_reads == std::vector{HostRead{TensorId{2}, OperationId{1}}});
  CHECK(parts->in_host == std::vector{weight, gradient, state});
  const auto at_once = v2::planning::shared_parts(v2::planning::in_order(trace, *line), machine,
                                                  v2::planning::WhatLeaves::leaves_at_once);
  REQUIRE(at_once);
  CHECK(at_once->parts.front().trace.operations[2].reads.empty());
}

TEST_CASE("Where two engines run at the same time, what the first one uses stays until it ends") {
  const v2::Machine machine = machine_of(1, Bytes{500}, {0, 0});
  Trace trace = trace_for(machine);
  std::vector<TensorId> tensors;
  for (int i = 0; i < 4; ++i) tensors.push_back(add(trace, Bytes{100}, TensorKind::persistent));
  run(trace, 0, 1000, {tensors[0]}, {});
  run(trace, 1, 300, {tensors[1]}, {});
  run(trace, 1, 300, {tensors[2]}, {});
  run(trace, 1, 600, {tensors[3]}, {});
  const Result<v2::planning::Timeline> line = v2::planning::make_timeline(trace, machine);
  REQUIRE(line);
  const auto parts = v2::planning::shared_parts(v2::planning::in_order(trace, *line), machine,
                                                v2::planning::WhatLeaves::leaves_at_once);
  REQUIRE(parts);
  const Trace& part = parts->parts.front().trace;
  std::vector<nanoseconds> times;
  for (const TraceOperation& operation : part.operations) times.push_back(operation.duration);
  CHECK(times == std::vector{nanoseconds{0}, nanoseconds{300}, nanoseconds{300}, nanoseconds{600}});
  for (std::size_t i = 1; i < 4; ++i) CHECK(part.operations[i].reads == std::vector{TensorId(i), TensorId{0}});
}

TEST_CASE("A value that another memory still holds comes from there, and not to the host if nobody needs it there") {
  struct Variant {
    std::uint64_t linked;  ///< bytes per second; 0: no link
    bool host_reads;
    bool released_before;
    std::vector<std::uint32_t> stay;
  };
  const std::vector<Variant> variants{{one_byte_per_ns, false, false, {1, 2, 3}},
                                      {one_byte_per_ns, true, false, {0, 1, 2, 3}},
                                      {one_byte_per_ns, false, true, {0, 1, 2, 3}},
                                      {one_byte_per_ns - 1, false, false, {0, 1, 2, 3}},
                                      {0, false, false, {0, 1, 2, 3}}};
  for (const Variant& variant : variants) {
    const v2::Machine machine = machine_of(2, Bytes{500}, {0, 1}, variant.linked);
    Trace trace = trace_for(machine);
    const TensorId value = add(trace, Bytes{100}, TensorKind::transient);
    run(trace, 0, 10, {}, {value});
    run(trace, 1, 10, {value}, {});
    if (variant.host_reads) trace.host_reads.push_back({value, OperationId{0}});
    v2::planning::SerialPlan plan;
    const auto command = [&](Kind kind, std::uint32_t before) -> v2::Command& {
      plan.before.push_back(before);
      v2::Command& added = plan.commands.emplace_back();
      added.kind = kind;
      added.tensor = value;
      return added;
    };
    const auto release = [&](std::uint32_t before) { command(Kind::release, before).memory = v2::MemoryId{0}; };
    command(Kind::copy, 1).link = v2::LinkId{1};  // to the host
    if (variant.released_before) release(1);
    v2::Command& in = command(Kind::copy, 1);
    in.link = v2::LinkId{2};  // from the host to gpu1
    in.offset = Bytes{0};
    if (!variant.released_before) release(2);
    command(Kind::release, 2).memory = v2::MemoryId{1};
    plan.initial.push_back({value, std::nullopt, v2::FormId::plain, v2::MemoryId{0}, Bytes{0}, false});
    CHECK(v2::planning::hand_over_directly(trace, machine, plan) == variant.stay);
    REQUIRE(plan.commands.size() == variant.stay.size());
    const std::size_t at = variant.released_before ? 2 : variant.stay.size() - 3;
    const bool is_direct = variant.linked >= one_byte_per_ns && !variant.released_before;
    CHECK(plan.commands[at].link == v2::LinkId{is_direct ? 4U : 2U});
  }
}

TEST_CASE("Two engines that update tensors in one memory overlap their copies") {
  const v2::Machine machine = machine_of(1, Bytes{5000}, {0, 0});
  Trace trace = trace_for(machine);
  std::vector<TensorId> tensors;
  for (int i = 0; i < 14; ++i) tensors.push_back(add(trace, Bytes{1000}, TensorKind::persistent));
  for (std::size_t i = 0; i < 7; ++i) {
    run(trace, 0, 2000, {}, {}, {tensors[i]});
    run(trace, 1, 2000, {}, {}, {tensors[7 + i]});
  }
  CHECK(planned(trace, machine).predicted.iteration == nanoseconds{15'000});  // 14,000 and the first copy
  // Planners of version 1 plan for it, too.
  const nanoseconds by_excess = planned(trace, machine, "excess-overlap").predicted.iteration;
  CHECK(by_excess < planned(trace, machine, "on-demand").predicted.iteration);
}

/// Layers on two GPUs, forward and backward, for several parts of a batch.
Trace pipeline(const v2::Machine& machine, std::size_t layers, std::uint64_t parts) {
  Trace trace = trace_for(machine);
  const auto some = [&](TensorKind kind, Bytes bytes, std::size_t count) {
    std::vector<TensorId> list;
    for (std::size_t i = 0; i < count; ++i) list.push_back(add(trace, bytes, kind));
    return list;
  };
  const std::vector<TensorId> weights = some(TensorKind::persistent, Bytes{1000}, layers);
  const auto engine = [&](std::size_t layer) { return layer < layers / 2 ? 0U : 1U; };
  const auto time = [&](std::int64_t whole) { return whole / static_cast<std::int64_t>(parts); };
  std::vector<std::vector<TensorId>> values;
  for (std::uint64_t p = 0; p < parts; ++p) {
    values.push_back(some(TensorKind::transient, Bytes{2000 / parts}, layers + 1));
    run(trace, 0, 10, {}, {values[p][0]});
    for (std::size_t l = 0; l < layers; ++l) {
      run(trace, engine(l), time(1200), {weights[l], values[p][l]}, {values[p][l + 1]});
    }
  }
  for (std::uint64_t p = 0; p < parts; ++p) {
    const std::vector<TensorId> gradients = some(TensorKind::transient, Bytes{2000 / parts}, layers + 1);
    run(trace, 1, 10, {values[p][layers]}, {gradients[layers]});
    for (std::size_t l = layers; l-- > 0;) {
      run(trace, engine(l), time(2400), {values[p][l], gradients[l + 1]}, {gradients[l]}, {weights[l]});
    }
  }
  return trace;
}

TEST_CASE("A pipeline of two GPUs is planned as a whole") {
  const v2::Machine machine = machine_of(2, Bytes{7000}, {0, 1}, 4 * one_byte_per_ns);
  const Trace trace = pipeline(machine, 8, 2);
  const v2::Plan plan = planned(trace, machine);
  CHECK(plan.predicted.iteration < nanoseconds{32'000});  // on demand, overlapped: 37,370
  const auto on_link = [&](std::size_t link) {
    return std::ranges::any_of(plan.commands, [&](const v2::Command& command) {
      return command.kind == Kind::copy && index(command.link) == link;
    });
  };
  CHECK(on_link(4));
  CHECK(on_link(5));
}

TEST_CASE("What a neighbour does not need of its memory keeps what leaves") {
  v2::Machine machine = machine_of(2, Bytes{4000}, {0, 1}, 4 * one_byte_per_ns);
  for (std::size_t l = 0; l < 4; ++l) machine.links[l].bytes_per_second = one_byte_per_ns / 10;
  machine.memories[1].bytes = Bytes{20'000};
  Trace trace = trace_for(machine);
  std::vector<TensorId> weights;
  for (int i = 0; i < 16; ++i) weights.push_back(add(trace, Bytes{1000}, TensorKind::persistent));
  for (const TensorId weight : weights) run(trace, 0, 1000, {weight}, {});
  const TensorId small = add(trace, Bytes{1000}, TensorKind::persistent);
  run(trace, 1, 1000, {}, {}, {small});
  CHECK(planned(trace, machine).predicted.iteration == nanoseconds{16'000});  // 140,000 from the host

  const auto spare = v2::planning::SpareMemory::find(trace, machine);
  REQUIRE(spare);
  REQUIRE(spare->machine().memories.size() == 4);
  CHECK(spare->machine().memories[1].bytes == Bytes{1125});  // 1000 and an eighth
  CHECK(spare->machine().memories[3].bytes == Bytes{18'875});
  CHECK(check_machine(spare->machine()));
  const v2::Link& copied = spare->machine().links.back();
  CHECK(copied.from == v2::MemoryId{3});
  CHECK(copied.to == v2::MemoryId{0});
  CHECK(copied.engine == spare->machine().links[5].engine);  // as the link from gpu1 to gpu0
  v2::Plan plan;
  plan.machine = spare->machine();
  plan.initial.push_back({weights[0], std::nullopt, v2::FormId::plain, v2::MemoryId{3}, Bytes{8}, true});
  const v2::Plan whole = spare->for_whole(trace, plan);
  CHECK(whole.machine == machine);
  CHECK(whole.initial.front().memory == v2::MemoryId{1});
  CHECK(whole.initial.front().offset == Bytes{1133});
  // Nobody can reach it, or it is needed.
  machine.links.resize(4);
  CHECK_FALSE(v2::planning::SpareMemory::find(trace, machine));
  CHECK_FALSE(v2::planning::SpareMemory::find(trace, machine_of(2, Bytes{1200}, {0, 1}, one_byte_per_ns)));
}

TEST_CASE("Engines compute again what comes slowly, and encode") {
  v2::Machine machine = machine_of(2, Bytes{5000}, {0, 1});
  for (v2::Link& link : machine.links) link.bytes_per_second = one_byte_per_ns / 20;
  for (const bool encodes : {false, true}) {
    Trace trace = trace_for(machine);
    constexpr std::size_t layers = 12;
    std::vector<std::vector<TensorId>> values(2);
    for (std::uint32_t g = 0; g < 2; ++g) {
      for (std::size_t l = 0; l <= layers; ++l) values[g].push_back(add(trace, Bytes{1000}, TensorKind::transient));
      run(trace, g, 10, {}, {values[g][0]});
      for (std::size_t l = 0; l < layers; ++l) {
        run(trace, g, 1000, {values[g][l]}, {values[g][l + 1]});
        trace.operations.back().replayable = !encodes;
      }
      for (std::size_t l = layers; l-- > 0;) run(trace, g, 2000, {values[g][l]}, {});
    }
    for (std::size_t t = 0; t < trace.tensors.size() && encodes; ++t) {
      trace.forms.push_back({id_at<TensorId>(t), "small", Bytes{100}, Bytes{50}, nanoseconds{50}, nanoseconds{50}});
    }
    const v2::Plan plan = planned(trace, machine);
    PlanningOptions none;
    none.ways = {.recompute = false, .compress = false, .pieces = false};
    none.go_on = [asked = 0](const PlanningProgress&) mutable { return ++asked < 600; };
    const Result<v2::Plan> copies = v2::make_plan("best", trace, machine, none);
    REQUIRE(copies);
    CHECK(4 * plan.predicted.iteration < copies->predicted.iteration);
    for (const std::uint32_t engine : {0U, 1U}) {
      CAPTURE(engine);
      CHECK(std::ranges::any_of(plan.commands, [&](const v2::Command& command) {
        if (encodes) return command.kind == Kind::decode && command.engine == v2::EngineId{engine};
        return command.kind == Kind::run && trace.operations[index(command.operation)].engine == engine;
      }));
    }
  }
}

}  // namespace swapmm::test::spread_shared_test
