// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <swapmm/plan/planners.hpp>
#include <swapmm/plan/v2/bound.hpp>
#include <swapmm/plan/v2/planners.hpp>
#include <swapmm/plan/v2/simulate.hpp>
#include <swapmm/plan/v2/simulation/elements.hpp>
#include <swapmm/plan/v2/simulation/event_run.hpp>
#include <swapmm/plan/v2/simulation/fair_rates.hpp>
#include <swapmm/plan/v2/spread/spread.hpp>
#include <swapmm/plan/v2/validate.hpp>

#include "support/effort.hpp"
#include "support/seeds.hpp"
#include "support/v2/device_case.hpp"

using namespace swapmm;
using namespace swapmm::test;

namespace {

/// The rates of all copies from one event to the next, made again from their starts and ends. Checks that they never
/// exceed a capacity, and that each copy has transferred its bytes at its end and not before. Returns the largest part
/// of a capacity that was in use.
double check_rates(const Trace& trace, const v2::Plan& plan) {
  using v2::simulation::Time;
  const v2::simulation::Parts parts(trace, plan);
  const auto elements = v2::simulation::elements_of(trace, plan, parts);
  v2::simulation::EventRun run(trace, plan, parts, elements);
  v2::simulation::RunLog log;
  run.log_to(&log);
  constexpr std::size_t iterations = 4;
  while (run.iteration_ends().size() < iterations && run.step(iterations)) {
  }
  struct Flow {
    v2::LinkId link;
    Time start, end;
    double bytes, moved = 0;
    std::uint64_t rate = 0;
  };
  std::vector<Flow> flows;
  std::set<Time> times;
  for (const auto& ended : log.ended) {
    const auto& element = elements[ended.element];
    if (!element.link || element.flow.value == 0) continue;
    flows.push_back({*element.link, ended.start + element.time, *ended.end, static_cast<double>(element.flow.value)});
    times.insert(flows.back().start);
    times.insert(flows.back().end);
  }
  // What is under way has a share, too.
  for (const auto& active : run.under_way()) {
    const auto& element = elements[active.element];
    if (!element.link || element.flow.value == 0) continue;
    flows.push_back({*element.link, active.start + element.time, v2::simulation::longest, -1});
    times.insert(flows.back().start);
  }
  v2::simulation::FairRates rates_of(plan.machine);
  double most = 0;
  const std::vector<Time> events(times.begin(), times.end());
  const Time last = run.iteration_ends().empty() ? Time{0} : run.iteration_ends().back();
  for (std::size_t e = 0; e + 1 < events.size() && events[e + 1] <= last; ++e) {
    std::vector<v2::LinkId> links;
    std::vector<Flow*> active;
    for (Flow& flow : flows) {
      if (flow.start > events[e] || flow.end <= events[e]) continue;
      active.push_back(&flow);
      links.push_back(flow.link);
    }
    std::vector<std::uint64_t> rates(links.size());
    rates_of.compute(links, rates);
    std::vector<std::uint64_t> used(plan.machine.capacities.size(), 0);
    for (std::size_t i = 0; i < active.size(); ++i) {
      active[i]->rate = rates[i];
      active[i]->moved += static_cast<double>(rates[i]) * static_cast<double>(events[e + 1] - events[e]) / 1e9;
      for (const auto capacity : plan.machine.links[index(links[i])].capacities) used[index(capacity)] += rates[i];
    }
    for (std::size_t c = 0; c < used.size(); ++c) {
      CHECK(used[c] <= plan.machine.capacities[c].bytes_per_second);
      most = std::max(most,
                      static_cast<double>(used[c]) / static_cast<double>(plan.machine.capacities[c].bytes_per_second));
    }
  }
  for (const Flow& flow : flows) {
    if (flow.bytes < 0 || flow.end > last) continue;
    CHECK(flow.moved >= flow.bytes - 1e-6);
    CHECK(flow.moved - static_cast<double>(flow.rate) / 1e9 < flow.bytes + 1e-6);  // not a nanosecond too long
  }
  return most;
}

/// Two devices of 100 bytes, with links of 1 byte/ns each way that share capacities as fast as one of them: those to
/// the devices the first one, those from the devices the second one.
v2::Machine two_devices(std::array<std::uint32_t, 2> capacities) {
  constexpr std::uint64_t rate = 1'000'000'000;
  v2::Machine machine;
  machine.name = "two devices";
  for (std::uint32_t c = 0; c <= std::max(capacities[0], capacities[1]); ++c) {
    machine.capacities.push_back({"root" + std::to_string(c), rate});
  }
  const v2::MemoryId host{2};
  for (std::uint32_t d = 0; d < 2; ++d) {
    const std::string name = "gpu" + std::to_string(d);
    const v2::MemoryId device{d};
    machine.memories.push_back({name, Bytes{100}, Bytes{1}, std::nullopt});
    machine.engines.push_back({name, device});
    const auto add = [&](const std::string& link, v2::MemoryId from, v2::MemoryId to, std::uint32_t capacity) {
      machine.links.push_back(
          {link, from, to, rate, std::chrono::nanoseconds{0}, std::nullopt, {v2::CapacityId{capacity}}});
    };
    add(name + ".in", host, device, capacities[0]);
    add(name + ".out", device, host, capacities[1]);
  }
  machine.memories.push_back({"host", std::nullopt, Bytes{1}, std::nullopt});
  machine.host = host;
  return machine;
}

}  // namespace

TEST_CASE("the bound knows the bytes that all devices must copy over a capacity") {
  // Each device has room for one of two weights, and changes both in each iteration: 200 bytes come and go.
  Trace program;
  program.tensors = {{"w", Bytes{100}, TensorKind::persistent, 0}, {"v", Bytes{100}, TensorKind::persistent, 0}};
  program.operations = {{"one", std::chrono::nanoseconds{10}, {}, {}, {TensorId{0}}},
                        {"two", std::chrono::nanoseconds{10}, {}, {}, {TensorId{1}}}};
  std::mt19937_64 random(1);
  const Trace trace = general::joined(random, {program, program});
  const auto both = v2::lower_bound(trace, two_devices({0, 0}));
  REQUIRE(both);
  CHECK(both->count() >= 799);
  CHECK(both->count() <= 800);
  const auto each_way = v2::lower_bound(trace, two_devices({0, 1}));
  REQUIRE(each_way);
  CHECK(each_way->count() >= 399);
  CHECK(each_way->count() < 500);
}

TEST_CASE(
    "best for several devices: plans are valid, within budgets and capacities, and no slower than independent ones") {
  const Seeds seeds = test::seeds(effort(300, 20));
  int planned = 0;
  int faster = 0;
  double most_used = 0;
  for (std::uint64_t seed = seeds.first; seed < seeds.first + seeds.count; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    const general::DeviceCase one = general::device_case(random, 8);
    REQUIRE(check_trace(one.trace));
    REQUIRE(v2::check_machine(one.machine));
    const auto plan = v2::make_plan("best", one.trace, one.machine);
    if (!plan) {
      CHECK(plan.problem().message.find("mistake") == std::string::npos);
      continue;
    }
    const auto violations = v2::validate(one.trace, *plan);
    if (!violations.empty()) CAPTURE(violations.front().message);
    CHECK(violations.empty());
    CHECK(plan->predicted.iteration == v2::simulate(one.trace, *plan).iteration);
    CHECK(plan->predicted.lower_bound <= plan->predicted.iteration);
    for (std::size_t m = 0; m < one.machine.memories.size(); ++m) {
      if (one.machine.memories[m].bytes)
        CHECK(plan->predicted.peaks[m] <= round_up(*one.machine.memories[m].bytes, Bytes{8}));
    }
    most_used = std::max(most_used, check_rates(one.trace, *plan));
    const auto all = v2::planning::make_spread_case(one.trace, one.machine);
    if (!all) continue;
    const auto independent = v2::planning::spread_at("best", *all, 1, {});
    if (!independent) continue;
    ++planned;
    CHECK(plan->predicted.iteration <= independent->predicted.iteration);
    CHECK(plan->predicted.lower_bound <= independent->predicted.iteration);
    if (plan->predicted.iteration < independent->predicted.iteration) ++faster;
  }
  if (seeds.count < 30) return;
  CHECK(2 * planned > static_cast<int>(seeds.count));
  CHECK(8 * faster > planned);
  CHECK(most_used > 0.99);
}

TEST_CASE("best for several devices gives the same plan for the same input, and ends when it is told to") {
  std::mt19937_64 random(3);
  const general::DeviceCase one = general::device_case(random, 8);
  const auto first = v2::make_plan("best", one.trace, one.machine);
  const auto second = v2::make_plan("best", one.trace, one.machine);
  REQUIRE(first);
  REQUIRE(second);
  CHECK(*first == *second);
  int asked = 0;
  PlanningOptions options;
  options.go_on = [&](const PlanningProgress&) { return ++asked < 3; };
  const auto hasty = v2::make_plan("best", one.trace, one.machine, options);
  REQUIRE(hasty);
  CHECK(v2::validate(one.trace, *hasty).empty());
  CHECK(asked < 60);
}

TEST_CASE("devices that share a link take turns if that is faster") {
  // Each device makes x, must send it away to make y, and gets it back: 10 + 100 + 10 + 100 + 10 ns alone. If both copy
  // at the same time, each copy takes 200 ns. If the second one sends x while the first one makes y, and so on, it ends
  // 100 ns after the first one.
  Trace program;
  program.tensors = {{"x", Bytes{100}, TensorKind::transient, 0}, {"y", Bytes{100}, TensorKind::transient, 0}};
  const std::chrono::nanoseconds ten{10};
  program.operations = {{"make x", ten, {}, {TensorId{0}}, {}},
                        {"make y", ten, {}, {TensorId{1}}, {}},
                        {"use x", ten, {TensorId{0}}, {}, {}}};
  std::mt19937_64 random(1);
  const Trace trace = general::joined(random, {program, program});
  const v2::Machine machine = two_devices({0, 1});
  const auto all = v2::planning::make_spread_case(trace, machine);
  REQUIRE(all);
  const auto independent = v2::planning::spread_at("best", *all, 1, {});
  REQUIRE(independent);
  CHECK(independent->predicted.iteration.count() == 430);
  const auto joint = v2::make_plan("best", trace, machine);
  REQUIRE(joint);
  CHECK(joint->predicted.iteration.count() == 330);
  // x has left each device when its second operation starts, after 100 ns at least; then 200 bytes come back.
  CHECK(joint->predicted.lower_bound.count() >= 299);
  CHECK(joint->predicted.lower_bound.count() <= 330);
}
