// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/ir/same_program.hpp>
#include <swapmm/plan/planners.hpp>
#include <swapmm/plan/v2/bound.hpp>
#include <swapmm/plan/v2/joint/devices.hpp>
#include <swapmm/plan/v2/planners.hpp>
#include <swapmm/plan/v2/schedule/prediction.hpp>
#include <swapmm/plan/v2/spread/spread_plans.hpp>
#include <swapmm/plan/v2/validate.hpp>

#include "support/plan_text.hpp"

namespace swapmm::test::v2_joint_test {

using std::chrono::nanoseconds;
using v2::planning::DeviceProgram;

/// A training step: as many layers, forward and backward, with an activation for each, and of other sizes for another
/// `seed`.
Trace training(std::size_t layers, std::uint32_t seed) {
  Trace trace;
  trace.name = "step";
  const auto bytes = [&](std::size_t layer) { return Bytes{64 * (1 + (layer * 7 + seed) % 13)}; };
  for (std::size_t l = 0; l < layers; ++l) {
    trace.tensors.push_back({"activation", bytes(l), TensorKind::transient, 0});
    trace.tensors.push_back({"weight", bytes(l + 5), TensorKind::persistent, 0});
  }
  const auto activation = [](std::size_t l) { return id_at<TensorId>(2 * l); };
  const auto weight = [](std::size_t l) { return id_at<TensorId>(2 * l + 1); };
  for (std::size_t l = 0; l < layers; ++l) {
    TraceOperation operation{"forward", nanoseconds{500}, {weight(l)}, {activation(l)}, {}};
    if (l > 0) operation.reads.push_back(activation(l - 1));
    trace.operations.push_back(std::move(operation));
  }
  for (std::size_t l = layers; l-- > 0;) {
    trace.operations.push_back({"backward", nanoseconds{900}, {activation(l)}, {}, {weight(l)}});
  }
  return trace;
}

DeviceProgram device(Trace trace) {
  Bytes all;
  for (const TraceTensor& tensor : trace.tensors) all += tensor.bytes;
  swapmm::Machine machine;
  machine.name = "device";
  machine.device_budget = Bytes{std::max<std::uint64_t>(all.value / 3, 64 * 13 * 4)};
  machine.alignment = Bytes{64};
  machine.h2d = machine.d2h = {1'000'000'000, nanoseconds{0}};
  return {std::move(trace), std::move(machine), {}};
}

/// A time limit, with a question as the unit of time. Only a question like the one before counts: the others do not
/// come from a search that works.
PlanningOptions after(int questions) {
  PlanningOptions options;
  options.go_on = [questions, asked = 0, last = 0.0](const PlanningProgress& progress) mutable {
    if (std::exchange(last, progress.part) == progress.part) ++asked;
    return asked < progress.part * questions;
  };
  return options;
}

PlanningOptions at_once() {
  PlanningOptions options;
  options.go_on = [](const PlanningProgress&) { return false; };
  return options;
}

constexpr LinkCapacities shared{.both_ways = 1'500'000'000};

nanoseconds together(std::span<const DeviceProgram> programs, const PlanningOptions& options) {
  const auto made = v2::planning::plan_devices(programs, shared, options, false);
  REQUIRE(made);
  REQUIRE(made->parts.size() == programs.size());
  return made->iteration;
}

TEST_CASE("several devices: plans that are known are where the search begins") {
  std::vector<DeviceProgram> programs{device(training(40, 1)), device(training(40, 2))};
  const nanoseconds hasty = together(programs, at_once());
  std::vector<const Plan*> alone;
  for (DeviceProgram& program : programs) {
    const auto plan = make_plan("best", program.trace, program.machine, after(60));
    REQUIRE(plan);
    program.known = *plan;
    alone.push_back(&*program.known);
  }
  const v2::planning::Devices devices(programs, shared);
  const v2::planning::SpreadCase all = devices.parts();
  auto side_by_side = v2::planning::spread_plans(all, alone);
  REQUIRE(side_by_side);
  v2::planning::predict(devices.trace(), side_by_side->plan);
  const nanoseconds known = side_by_side->plan.predicted.iteration;
  REQUIRE(known < hasty);
  const nanoseconds with_known = together(programs, at_once());
  CHECK(with_known <= known);

  SUBCASE("also if there is only one") {
    programs[0].known.reset();
    CHECK(together(programs, at_once()) < hasty);
  }
  SUBCASE("unless they are not valid") {
    for (DeviceProgram& program : programs) program.known->commands.clear();
    CHECK(together(programs, at_once()) == hasty);
  }
  SUBCASE("also if they were made for other durations") {
    for (DeviceProgram& program : programs) program.known->trace_digest = std::string(64, '0');
    CHECK(together(programs, at_once()) == with_known);
  }
}

TEST_CASE("several devices: each has its part of the time for planning") {
  std::vector<DeviceProgram> programs;
  for (const std::uint32_t seed : {1U, 2U, 3U, 4U}) programs.push_back(device(training(80, seed)));
  const nanoseconds hasty = together(programs, at_once());
  const nanoseconds soon = together(programs, after(120));
  CHECK(static_cast<double>(soon.count()) < 0.94 * static_cast<double>(hasty.count()));
}

TEST_CASE("several devices: best asks for no bound before it has a plan, and keeps time for one") {
  const std::vector<DeviceProgram> programs{device(training(40, 1)), device(training(40, 2))};
  const v2::planning::Devices devices(programs, shared);
  const auto plan = v2::make_plan("best", devices.trace(), devices.machine(), after(200));
  REQUIRE(plan);
  CHECK(v2::validate(devices.trace(), *plan).empty());
  const auto bound = v2::lower_bound(devices.trace(), devices.machine());
  REQUIRE(bound);
  CHECK(plan->predicted.lower_bound <= *bound);
  CHECK(plan->predicted.lower_bound > plan->predicted.compute);
  const auto hasty = v2::make_plan("best", devices.trace(), devices.machine(), at_once());
  REQUIRE(hasty);
  CHECK(v2::validate(devices.trace(), *hasty).empty());
  CHECK(hasty->predicted.lower_bound <= *bound);
  CHECK(hasty->predicted.lower_bound >= hasty->predicted.compute);
}

TEST_CASE("the bound knows memories behind others, up to one that has no limit") {
  // Four weights change in each iteration. The device, a near memory and a disk behind it hold three of them; the
  // fourth passes the slow link between disk and host in both directions.
  Trace trace;
  for (const char* const name : {"a", "b", "c", "d"}) {
    trace.tensors.push_back({name, Bytes{100}, TensorKind::persistent, 0});
    trace.operations.push_back({name, nanoseconds{1}, {}, {}, {id_at<TensorId>(trace.tensors.size() - 1)}});
  }
  v2::Machine machine;
  machine.name = "behind";
  machine.memories = {{"device", Bytes{100}, Bytes{1}, std::nullopt},
                      {"near", Bytes{100}, Bytes{1}, std::nullopt},
                      {"disk", Bytes{100}, Bytes{1}, std::nullopt},
                      {"host", std::nullopt, Bytes{1}, std::nullopt}};
  machine.engines = {{"device", v2::MemoryId{0}}};
  machine.host = v2::MemoryId{3};
  const auto link = [&](std::uint32_t a, std::uint32_t b, std::uint64_t rate) {
    machine.links.push_back({machine.memories[a].name + "-" + machine.memories[b].name,
                             v2::MemoryId{a},
                             v2::MemoryId{b},
                             rate,
                             nanoseconds{0},
                             std::nullopt,
                             {}});
  };
  for (const auto& [a, b, rate] :
       {std::array<std::uint64_t, 3>{0, 1, 10'000'000'000}, {1, 2, 1'000'000'000}, {2, 3, 100'000'000}}) {
    link(static_cast<std::uint32_t>(a), static_cast<std::uint32_t>(b), rate);
    link(static_cast<std::uint32_t>(b), static_cast<std::uint32_t>(a), rate);
  }
  REQUIRE(v2::check_machine(machine));
  const auto bound = v2::lower_bound(trace, machine);
  REQUIRE(bound);
  CHECK(bound->count() >= 980);
  // A second device that only the host connects with the first one is no place for the fourth.
  machine.memories.push_back({"other", Bytes{100}, Bytes{1}, std::nullopt});
  link(3, 4, 10'000'000'000);
  link(4, 3, 10'000'000'000);
  const auto beside_another = v2::lower_bound(trace, machine);
  REQUIRE(beside_another);
  CHECK(beside_another->count() >= 980);
}

TEST_CASE("programs are the same if they differ in names alone") {
  Trace one = training(3, 1);
  one.host_reads = {{TensorId{1}, OperationId{2}}};
  Trace other = one;
  other.name = "another";
  for (TraceTensor& tensor : other.tensors) tensor.name += "@1";
  for (TraceOperation& operation : other.operations) operation.name += "@1";
  CHECK(swapmm::detail::is_same_program(one, other));
  const std::vector<std::function<void(Trace&)>> changes{
      [](Trace& trace) { trace.tensors[0].bytes += Bytes{1}; },
      [](Trace& trace) { trace.tensors[0].kind = TensorKind::persistent; },
      [](Trace& trace) { trace.tensors[0].available_from = 1; },
      [](Trace& trace) { trace.tensors[0].copied = Bytes{1}; },
      [](Trace& trace) { trace.tensors.pop_back(); },
      [](Trace& trace) { trace.operations[0].duration += nanoseconds{1}; },
      [](Trace& trace) { trace.operations[1].reads.pop_back(); },
      [](Trace& trace) { trace.operations[1].writes.clear(); },
      [](Trace& trace) { trace.operations[4].updates.clear(); },
      [](Trace& trace) { trace.operations[0].engine = 1; },
      [](Trace& trace) { trace.operations[0].replayable = true; },
      [](Trace& trace) { trace.operations[0].in_pieces = true; },
      [](Trace& trace) { trace.operations.pop_back(); },
      [](Trace& trace) { trace.host_reads.clear(); },
      [](Trace& trace) { trace.engines = {"gpu0"}; },
      [](Trace& trace) {
        trace.ranges = {{OperationId{0}, TensorId{0}, Bytes{0}, Bytes{1}}};
      },
      [](Trace& trace) {
        trace.forms = {{TensorId{0}, "zero", Bytes{64}, Bytes{32}, nanoseconds{1}, nanoseconds{1}}};
      },
      [](Trace& trace) {
        trace.lingering = {{TensorId{0}, OperationId{1}, 2}};
      },
  };
  for (std::size_t i = 0; i < changes.size(); ++i) {
    CAPTURE(i);
    Trace changed = other;
    changes[i](changed);
    CHECK_FALSE(swapmm::detail::is_same_program(one, changed));
  }
}

TEST_CASE(
    "several devices: an input comes before the operation of its own device, host reads behind theirs, and links "
    "share") {
  v2::planning::DeviceProgram program;
  program.trace.tensors = {tensor("x", 10, TensorKind::input, 2), tensor("w", 10, TensorKind::persistent)};
  program.trace.operations = {operation("a", 1, {1}), operation("b", 1, {}, {}, {1}), operation("c", 1, {0, 1})};
  program.trace.host_reads = {{TensorId{1}, OperationId{1}}};
  program.machine = machine(100);
  const std::vector<v2::planning::DeviceProgram> two(2, program);
  const v2::planning::Devices devices(two, {.to_devices = 5, .from_devices = 6, .both_ways = 7});
  const Trace& trace = devices.trace();
  REQUIRE(check_trace(trace));
  // Both programs step by step: a a b b c c.
  CHECK(trace.tensors[0].available_from == 4);
  CHECK(trace.tensors[2].available_from == 5);
  CHECK(trace.operations[4].reads == std::vector{TensorId{0}, TensorId{1}});
  CHECK(trace.operations[5].reads == std::vector{TensorId{2}, TensorId{3}});
  CHECK(trace.host_reads == std::vector{HostRead{TensorId{1}, OperationId{2}}, HostRead{TensorId{3}, OperationId{3}}});
  const v2::Machine& both = devices.machine();
  REQUIRE(v2::check_machine(both));
  REQUIRE(both.capacities.size() == 3);
  REQUIRE(both.links.size() == 4);
  for (const std::size_t l : {0U, 2U})
    CHECK(both.links[l].capacities == std::vector{v2::CapacityId{0}, v2::CapacityId{2}});
  for (const std::size_t l : {1U, 3U})
    CHECK(both.links[l].capacities == std::vector{v2::CapacityId{1}, v2::CapacityId{2}});
}

}  // namespace swapmm::test::v2_joint_test
