// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <vector>

#include <swapmm/plan/planners.hpp>
#include <swapmm/plan/v2/relaxation/merged_host.hpp>
#include <swapmm/plan/v2/simulate.hpp>
#include <swapmm/plan/v2/stores/passing.hpp>
#include <swapmm/plan/v2/stores/routes.hpp>
#include <swapmm/plan/v2/stores/stored_plan.hpp>
#include <swapmm/plan/v2/validate.hpp>

#include "support/plain_traces.hpp"

using namespace swapmm;

namespace {

/// A device of 220 bytes, a host of that many, and a disk without limit.
v2::Machine small_host_and_disk(std::uint64_t host_bytes) {
  v2::Machine machine;
  machine.memories = {{"gpu", Bytes{220}, Bytes{1}, std::nullopt},
                      {"host", Bytes{host_bytes}, Bytes{1}, std::nullopt},
                      {"disk", std::nullopt, Bytes{1}, std::nullopt}};
  machine.engines = {{"compute", v2::MemoryId{0}}};
  machine.host = v2::MemoryId{1};
  const auto add = [&](const char* name, std::uint32_t from, std::uint32_t to, std::uint64_t rate) {
    machine.links.push_back(
        {name, v2::MemoryId{from}, v2::MemoryId{to}, rate, std::chrono::nanoseconds{0}, std::nullopt, {}});
  };
  add("host-gpu", 1, 0, 4'000'000'000);
  add("gpu-host", 0, 1, 4'000'000'000);
  add("disk-gpu", 2, 0, 1'000'000'000);
  add("gpu-disk", 0, 2, 1'000'000'000);
  return machine;
}

/// The same, but the disk is behind the host.
v2::Machine disk_behind_host(std::uint64_t host_bytes) {
  v2::Machine machine = small_host_and_disk(host_bytes);
  machine.links[2].to = machine.host;
  machine.links[3].from = machine.host;
  return machine;
}

v2::planning::StoreRoutes routes_of(const Trace& trace, const v2::Machine& machine) {
  return v2::planning::find_routes(trace, machine, v2::MemoryId{0}, std::vector<bool>(trace.tensors.size(), false));
}

}  // namespace

TEST_CASE("values that find no place in the wanted store go on to the next one, and the plan is valid") {
  const Trace trace = test::weights_in_turn(6, 100, 50);
  for (const std::uint64_t host_bytes : {50U, 150U, 350U, 900U}) {
    CAPTURE(host_bytes);
    const v2::Machine machine = small_host_and_disk(host_bytes);
    const auto merged = v2::planning::merged_host(machine, v2::MemoryId{0});
    REQUIRE(merged);
    const auto old = make_plan("belady", trace, *merged);
    REQUIRE(old);
    const std::vector<bool> in_host(trace.tensors.size(), false);
    const auto routes = v2::planning::find_routes(trace, machine, v2::MemoryId{0}, in_host);
    REQUIRE(routes.stores.size() == 2);
    CHECK(std::ranges::none_of(routes.stores, &v2::planning::RoutedStore::is_far));
    const v2::planning::DeviceCase device{trace, machine, v2::MemoryId{0}, routes, in_host};
    const auto fastest = [](TensorId, std::optional<std::uint32_t>) { return std::size_t{0}; };
    const auto plan = v2::planning::stored_plan(device, *old, fastest, {});
    REQUIRE(plan);
    const auto violations = v2::validate(trace, *plan);
    if (!violations.empty()) CAPTURE(violations.front().message);
    CHECK(violations.empty());
    const auto stored = std::ranges::count(plan->initial, v2::MemoryId{1}, &v2::Place::memory);
    CHECK(static_cast<std::uint64_t>(stored) == std::min<std::uint64_t>(host_bytes / 100, 5));  // one never leaves
  }
}

TEST_CASE("a memory behind another one is a store with a way through it, where a part stays free") {
  const Trace trace = test::weights_in_turn(6, 100, 50);
  const v2::Machine machine = disk_behind_host(2000);
  const v2::planning::StoreRoutes routes = routes_of(trace, machine);
  REQUIRE(routes.stores.size() == 2);
  CHECK(routes.stores[0].memory == machine.host);
  CHECK(!routes.stores[0].is_far());
  CHECK(routes.stores[1].memory == v2::MemoryId{2});
  CHECK(routes.stores[1].in == std::vector{v2::LinkId{2}, v2::LinkId{0}});
  CHECK(routes.stores[1].out == std::vector{v2::LinkId{1}, v2::LinkId{3}});
  // A quarter; in larger memories, room for eight of the largest tensor.
  CHECK(routes.passing == std::vector<std::optional<Bytes>>{std::nullopt, Bytes{1500}, std::nullopt});
  CHECK(v2::planning::largest_to_pass(routes, machine, routes.stores[1]) == Bytes{500});
  const v2::Machine large = disk_behind_host(9000);
  CHECK(v2::planning::largest_to_pass(routes_of(trace, large), large, routes.stores[1]) == Bytes{800});
  CHECK(v2::planning::largest_to_pass(routes, machine, routes.stores[0]) == std::nullopt);
  // Both ways share the host's links, and the slowest link of a way is its rate.
  const auto check = v2::check_machine(routes.direct);
  if (!check) MESSAGE(check.problem().message);
  CHECK(check);
  CHECK(routes.direct.memories[1].bytes == Bytes{1500});
  REQUIRE(routes.direct.links.size() == 4);
  CHECK(routes.direct.links[index(routes.links[0].in)].bytes_per_second == 4'000'000'000);
  CHECK(routes.direct.links[index(routes.links[1].in)].bytes_per_second == 1'000'000'000);
  REQUIRE(routes.direct.capacities.size() == 2);
  for (const v2::Link& link : routes.direct.links) CHECK(link.capacities.size() == 1);
  CHECK(routes.direct.links[index(routes.links[0].in)].capacities ==
        routes.direct.links[index(routes.links[1].in)].capacities);
}

TEST_CASE("nothing is stored behind a memory without limit, or behind one that is too small to pass") {
  const Trace trace = test::weights_in_turn(6, 100, 50);
  v2::Machine machine = disk_behind_host(2000);
  machine.memories[1].bytes = std::nullopt;
  CHECK(routes_of(trace, machine).stores.size() == 1);
  CHECK(routes_of(trace, disk_behind_host(99)).stores.size() == 1);
  // With little room, there is enough for one.
  const v2::Machine little = disk_behind_host(150);
  const v2::planning::StoreRoutes routes = routes_of(trace, little);
  REQUIRE(routes.stores.size() == 2);
  CHECK(v2::planning::largest_to_pass(routes, little, routes.stores[1]) == Bytes{100});
}

TEST_CASE("values of a store behind another one pass it, a few at a time, and the plan is valid") {
  const Trace trace = test::weights_in_turn(6, 100, 50);
  for (const std::uint64_t host_bytes : {220U, 400U, 900U, 2000U}) {
    CAPTURE(host_bytes);
    const v2::Machine machine = disk_behind_host(host_bytes);
    const auto merged = v2::planning::merged_host(machine, v2::MemoryId{0});
    REQUIRE(merged);
    const auto old = make_plan("belady", trace, *merged);
    REQUIRE(old);
    const v2::planning::StoreRoutes routes = routes_of(trace, machine);
    const v2::planning::DeviceCase device{trace, machine, v2::MemoryId{0}, routes,
                                          std::vector<bool>(trace.tensors.size(), false)};
    const auto last = [](TensorId, std::optional<std::uint32_t>) { return std::size_t{1}; };
    const auto plan = v2::planning::stored_plan(device, *old, last, {});
    REQUIRE(plan);
    const auto violations = v2::validate(trace, *plan);
    if (!violations.empty()) CAPTURE(violations.front().message);
    CHECK(violations.empty());
    std::size_t from_disk = 0;
    std::size_t to_device = 0;
    for (const v2::Command& command : plan->commands) {
      if (command.kind != v2::CommandKind::copy) continue;
      if (command.link == v2::LinkId{2}) {
        ++from_disk;
        REQUIRE(command.offset);
        CHECK(*command.offset >= *routes.passing[1]);
      }
      if (command.link == v2::LinkId{0}) ++to_device;
    }
    CHECK(from_disk > 0);
    CHECK(from_disk == to_device);
    const v2::Simulation simulation = v2::simulate(trace, *plan);
    CHECK(simulation.peaks[1] <= Bytes{host_bytes});
    // A copy takes 100 ns from the disk, and 25 ns from the host. With room for several, both run at the same time.
    if (host_bytes == 2000) CHECK(simulation.iteration.count() <= static_cast<std::int64_t>(100 * from_disk + 30));
    if (host_bytes == 220) CHECK(simulation.iteration.count() >= static_cast<std::int64_t>(125 * from_disk));
  }
}

TEST_CASE("what passes a memory has places there that no two values share at a step") {
  Trace trace = test::weights_in_turn(4, 100, 50);
  const v2::Machine machine = disk_behind_host(2000);
  v2::planning::StoreRoutes routes = routes_of(trace, machine);
  const v2::planning::DeviceCase device{trace, machine, v2::MemoryId{0}, routes,
                                        std::vector<bool>(trace.tensors.size(), false)};
  std::vector<v2::planning::StoreCopy> copies;
  for (std::uint32_t c = 0; c < 12; ++c) {
    copies.push_back({5 * c + 2, TensorId{c % 4}, c / 4 % 2 == 1, 1, false});
  }
  const std::uint32_t steps = 70;
  for (const std::uint64_t room : {400U, 250U, 100U}) {
    CAPTURE(room);
    routes.passing[1] = Bytes{2000 - room};
    const auto places = v2::planning::place_passing(device, copies, steps, {});
    REQUIRE(places.size() == copies.size());
    std::uint32_t longest = 0;
    for (std::size_t a = 0; a < copies.size(); ++a) {
      REQUIRE(places[a].offsets.size() == 1);
      CHECK(places[a].first <= copies[a].step);
      CHECK(places[a].last >= copies[a].step);
      CHECK((copies[a].is_in ? places[a].last : places[a].first) == copies[a].step);
      CHECK(places[a].offsets[0] >= *routes.passing[1]);
      CHECK(places[a].offsets[0] + Bytes{100} <= Bytes{2000});
      longest = std::max(longest, places[a].last - places[a].first);
      for (std::size_t b = 0; b < a; ++b) {
        const bool at_once = places[a].first <= places[b].last && places[b].first <= places[a].last;
        if (!at_once) continue;
        CHECK(copies[a].tensor != copies[b].tensor);
        const auto distance = static_cast<std::int64_t>(places[a].offsets[0].value) -
                              static_cast<std::int64_t>(places[b].offsets[0].value);
        CHECK(std::abs(distance) >= 100);
      }
    }
    CHECK((longest > 0) == (room > 100));
  }
  // A value that the host gives does not leave the store before its copy.
  routes.passing[1] = Bytes{1600};
  for (auto& copy : copies) copy.is_given = true;
  const auto given = v2::planning::place_passing(device, copies, steps, {});
  for (std::size_t c = 0; c < copies.size(); ++c) {
    if (copies[c].is_in) CHECK(given[c].first == copies[c].step);
  }
}
