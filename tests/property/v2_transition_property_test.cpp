// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <utility>

#include <swapmm/ir/liveness.hpp>
#include <swapmm/plan/v2/planners.hpp>
#include <swapmm/plan/v2/transition.hpp>
#include <swapmm/plan/v2/validate.hpp>

#include "support/effort.hpp"
#include "support/random_trace.hpp"
#include "support/seeds.hpp"
#include "support/v2/device_case.hpp"

using namespace swapmm;
using namespace swapmm::test;

namespace {

constexpr std::uint64_t host_rate = 1'000'000'000;
constexpr std::size_t most_neighbours = 3;

/// A device, a host, and up to three neighbours that spare so many bytes each; 0: none, and no links. If the host has a
/// limit, there is a disk without one.
v2::Machine harvest_machine(Bytes budget, std::optional<Bytes> host_bytes,
                            const std::array<std::uint64_t, most_neighbours>& spare, bool joins_host) {
  v2::Machine machine;
  machine.name = "harvest";
  const v2::MemoryId device{0};
  machine.memories.push_back({"gpu", budget, Bytes{8}, std::nullopt});
  machine.memories.push_back({"host", host_bytes, Bytes{1}, std::nullopt});
  machine.engines.push_back({"compute", device});
  machine.host = v2::MemoryId{1};
  const auto join = [&](v2::MemoryId a, v2::MemoryId b, std::uint64_t rate) {
    const auto name = [&](v2::MemoryId id) { return machine.memories[index(id)].name; };
    machine.links.push_back({name(a) + "-" + name(b), a, b, rate, std::chrono::nanoseconds{0}, std::nullopt, {}});
    machine.links.push_back({name(b) + "-" + name(a), b, a, rate, std::chrono::nanoseconds{0}, std::nullopt, {}});
  };
  join(device, machine.host, host_rate);
  if (host_bytes) {
    machine.memories.push_back({"disk", std::nullopt, Bytes{1}, std::nullopt});
    join(device, v2::MemoryId{2}, host_rate / 4);
  }
  for (std::size_t i = 0; i < spare.size(); ++i) {
    if (spare[i] == 0) continue;
    const auto memory = id_at<v2::MemoryId>(machine.memories.size());
    machine.memories.push_back({"neighbour" + std::to_string(i), Bytes{spare[i]}, Bytes{8}, std::nullopt});
    join(device, memory, 4 * host_rate);
    if (joins_host) join(memory, machine.host, host_rate);
  }
  return machine;
}

}  // namespace

TEST_CASE("if neighbours take memory back, every value is in a place that is left before they get it") {
  const Seeds seeds = test::seeds(effort(300, 20));
  constexpr int revocations_of_each = 10;
  std::size_t revocations = 0;
  std::size_t moved = 0;
  std::size_t several = 0;
  std::size_t to_nothing = 0;
  std::size_t through_limited_host = 0;
  std::size_t refused = 0;
  std::size_t for_nothing = 0;
  for (std::uint64_t seed = seeds.first; seed < seeds.first + seeds.count; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    RandomTraceOptions options;
    options.operations = 2 + one_of(random, 12);
    options.tensors = 3 + one_of(random, 12);
    options.host_reads = chance(random, 0.3) ? 0.1 : 0.0;
    options.inputs = chance(random, 0.5);
    const Trace trace = random_trace(random, options);
    std::uint64_t bytes = 0;
    for (const TraceTensor& tensor : trace.tensors) bytes += tensor.bytes.value + 8;
    const std::uint64_t bundle = std::max<std::uint64_t>(analyze_liveness(trace, Bytes{8}).largest_bundle.value, 8);
    const Bytes budget{bundle + below_or_equal(random, bundle / 2)};
    const bool joins_host = chance(random, 0.5);
    std::uint64_t in_host = 8;  // what the host gives or reads must be there
    for (std::size_t t = 0; t < trace.tensors.size(); ++t) {
      const bool is_read = std::ranges::count(trace.host_reads, id_at<TensorId>(t), &HostRead::tensor) != 0;
      if (trace.tensors[t].kind == TensorKind::input || is_read) in_host += trace.tensors[t].bytes.value + 8;
    }
    const std::optional<Bytes> host_bytes =
        chance(random, 0.6) ? std::optional{Bytes{in_host + below_or_equal(random, bytes / 2)}} : std::nullopt;
    std::array<std::uint64_t, most_neighbours> spare{};
    const auto draw = [&] { return chance(random, 0.3) ? 0 : 8 + below_or_equal(random, bytes / 2); };
    for (std::uint64_t& one : spare) one = draw();
    const auto planner = [&]() -> const char* { return chance(random, 0.5) ? "belady" : "on-demand"; };
    // Searching would take most of the time; the plans it makes are as good as any for what is tested here.
    const auto make = [&](const v2::Machine& machine) {
      if (!chance(random, 0.1)) return v2::make_plan(planner(), trace, machine);
      PlanningOptions hasty;
      hasty.go_on = [asked = 0](const PlanningProgress&) mutable { return ++asked < 2; };
      return v2::make_plan("best", trace, machine, hasty);
    };
    Result<v2::Plan> now = make(harvest_machine(budget, host_bytes, spare, joins_host));
    for (int i = 0; i < revocations_of_each && now; ++i) {
      std::array<std::uint64_t, most_neighbours> next = spare;
      std::size_t shrunk = 0;
      bool vanished = false;
      for (std::uint64_t& one : next) {
        if (one == 0 || !chance(random, 0.6)) continue;
        one = chance(random, 0.4) ? 0 : below_or_equal(random, one - 1);
        ++shrunk;
        vanished = vanished || one == 0;
      }
      const v2::Machine less = harvest_machine(budget, host_bytes, next, joins_host);
      Result<v2::Plan> then = make(less);
      if (!then) break;
      const std::size_t iterations = one_of(random, 4);
      CAPTURE(i);
      const auto transition = v2::make_transition(trace, *now, *then, iterations);
      if (!transition) {
        // Only what the interface names may be in the way.
        const std::string& reason = transition.problem().message;
        if (host_bytes) MESSAGE(reason);
        CHECK_MESSAGE((host_bytes || reason.find("the host still waits") != std::string::npos), reason);
        ++refused;
      } else {
        ++revocations;
        const auto violations = v2::check_transition(trace, *now, *then, *transition, iterations);
        CHECK_MESSAGE(violations.empty(), (violations.empty() ? "" : violations.front().message));
        // No step is there for nothing, and the check sees that one is missing.
        if (!transition->commands.empty()) {
          v2::Transition shorter = *transition;
          shorter.commands.erase(shorter.commands.begin() +
                                 static_cast<std::ptrdiff_t>(one_of(random, shorter.commands.size())));
          if (v2::check_transition(trace, *now, *then, shorter, iterations).empty()) ++for_nothing;
        }
        if (transition->moved > Bytes{0}) ++moved;
        if (shrunk > 1) ++several;
        if (vanished) ++to_nothing;
        if (host_bytes) ++through_limited_host;
      }
      // Some of it comes back before the next time. Nothing has to move for that.
      spare = next;
      for (std::uint64_t& one : spare) {
        if (chance(random, 0.5)) one = std::max(one, draw());
      }
      now = make(harvest_machine(budget, host_bytes, spare, joins_host));
    }
  }
  MESSAGE(revocations, " revocations, ", moved, " moved bytes, ", several, " of several neighbours, ", to_nothing,
          " to nothing, ", through_limited_host, " with a limited host, ", refused, " refused, ", for_nothing,
          " with a step for nothing");
  if (seeds.count < 30) return;
  CHECK(7 * moved > revocations);
  CHECK(4 * several > revocations);
  CHECK(4 * to_nothing > revocations);
  CHECK(10 * through_limited_host > revocations);
  CHECK(50 * refused < revocations);
  CHECK(50 * for_nothing < revocations);
}

TEST_CASE(
    "if several devices lose a memory that all of them use, the plan for less follows on what the old one leaves") {
  const Seeds seeds = test::seeds(effort(600, 60));
  std::size_t moved = 0;
  for (std::uint64_t seed = seeds.first; seed < seeds.first + seeds.count; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    const general::DeviceCase one = general::device_case(random, 8);
    const auto near = std::ranges::find(one.machine.memories, "near", &v2::Memory::name);
    if (near == one.machine.memories.end()) continue;
    // Values that go to the near memory in one iteration are there at the end if no operation needs them before.
    const auto now = v2::make_plan(chance(random, 0.5) ? "belady" : "on-demand", one.trace, one.machine);
    if (!now) continue;
    const v2::Machine less = v2::without_memory(
        one.machine, id_at<v2::MemoryId>(static_cast<std::size_t>(near - one.machine.memories.begin())));
    REQUIRE(v2::check_machine(less));
    const auto replan = v2::plan_for_other_memory("belady", one.trace, *now, less);
    REQUIRE(replan);
    CHECK(replan->plan.machine == less);
    CHECK(v2::validate(one.trace, replan->plan).empty());
    const auto violations = v2::check_transition(one.trace, *now, replan->plan, replan->transition);
    CHECK_MESSAGE(violations.empty(), (violations.empty() ? "" : violations.front().message));
    if (replan->transition.moved > Bytes{0}) ++moved;
    CHECK(!v2::make_transition(one.trace, replan->plan, *now));  // to the near memory, which is new then
  }
  if (seeds.count >= 200) CHECK(moved > 0);  // rare: the host has room for everything
}

TEST_CASE("a plan that uses nothing of a neighbour stays as it is if the neighbour's memory vanishes") {
  Trace trace;
  trace.tensors = {{"w", Bytes{104}, TensorKind::persistent, 0}, {"v", Bytes{104}, TensorKind::persistent, 0}};
  const std::chrono::nanoseconds ten{10};
  trace.operations = {{"one", ten, {}, {}, {TensorId{0}}}, {"two", ten, {}, {}, {TensorId{1}}}};
  const v2::Machine all = harvest_machine(Bytes{208}, std::nullopt, {1000, 0, 0}, false);
  const auto now = v2::make_plan("belady", trace, all);
  REQUIRE(now);
  const v2::Machine less = v2::without_memory(all, v2::MemoryId{2});
  const auto same = v2::plan_for_other_memory("best", trace, *now, less);
  REQUIRE(same);
  CHECK(same->plan.planner == "belady");
  CHECK(same->plan.commands == now->commands);
  CHECK(same->transition.commands.empty());

  // With half of the device's memory, one of them is in the neighbour when an iteration ends, and goes to the host.
  const v2::Machine small = harvest_machine(Bytes{104}, std::nullopt, {1000, 0, 0}, false);
  v2::Plan by_hand = *now;
  by_hand.machine = small;
  using Kind = v2::CommandKind;
  const auto place = [](std::uint32_t tensor, std::uint32_t memory, std::uint64_t offset, bool valid) {
    return v2::Place{TensorId{tensor}, std::nullopt, v2::FormId::plain, v2::MemoryId{memory}, Bytes{offset}, valid};
  };
  const auto link = [&](const char* name) {
    const auto at = std::ranges::find(small.links, name, &v2::Link::name);
    REQUIRE(at != small.links.end());
    return id_at<v2::LinkId>(static_cast<std::size_t>(at - small.links.begin()));
  };
  by_hand.initial = {place(0, 0, 0, true), place(1, 2, 0, true), place(0, 1, 0, false), place(1, 1, 0, false)};
  by_hand.commands.clear();
  const auto add = [&](Kind kind, std::uint32_t tensor) -> v2::Command& {
    v2::Command& command = by_hand.commands.emplace_back();
    command.kind = kind;
    command.tensor = TensorId{tensor};
    return command;
  };
  const auto after = [](Wait::On on, std::int32_t position) { return Wait{on, false, position}; };
  // w goes to the neighbour, and v comes; then the other way round.
  for (const bool back : {false, true}) {
    const std::uint32_t leaves = back ? 1 : 0;
    const auto first = static_cast<std::int32_t>(by_hand.commands.size());
    v2::Command& out = add(Kind::copy, leaves);
    out.link = link("gpu-neighbour0");
    out.offset = Bytes{back ? 0U : 400U};
    out.after = {after(Wait::On::operation, back ? 1 : 0)};
    if (back) out.after.push_back(after(Wait::On::command, 3));
    v2::Command& release = add(Kind::release, leaves);
    release.memory = v2::MemoryId{0};
    release.after = {after(Wait::On::command, first)};
    v2::Command& in = add(Kind::copy, 1 - leaves);
    in.link = link("neighbour0-gpu");
    in.offset = Bytes{0};
    in.after = {after(Wait::On::command, first + 1)};
    in.before_operations = {back ? 2U : 1U};
    v2::Command& free = add(Kind::release, 1 - leaves);
    free.memory = v2::MemoryId{2};
    free.after = {after(Wait::On::command, first + 2)};
  }
  const auto violations = v2::validate(trace, by_hand);
  REQUIRE_MESSAGE(violations.empty(), (violations.empty() ? "" : violations.front().message));
  const auto replan = v2::plan_for_other_memory("belady", trace, by_hand, v2::without_memory(small, v2::MemoryId{2}));
  REQUIRE_MESSAGE(replan, (replan ? "" : replan.problem().message));
  CHECK(v2::check_transition(trace, by_hand, replan->plan, replan->transition).empty());
  // The one way from the neighbour to the host is through the device, and w has to make room there: 104 bytes at
  // 4 GB/s, and twice as many at 1 GB/s.
  CHECK(replan->transition.moved >= Bytes{312});
  CHECK(replan->transition.time >= std::chrono::nanoseconds{26 + 208});
}
