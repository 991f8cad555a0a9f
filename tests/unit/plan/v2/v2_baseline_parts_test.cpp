// SPDX-License-Identifier: Apache-2.0
// What on-demand and belady of version 2 stand on: free bytes of a memory, and what leaves it first.
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include <swapmm/plan/v2/baselines/free_ranges.hpp>
#include <swapmm/plan/v2/baselines/on_demand.hpp>
#include <swapmm/plan/v2/baselines/victims.hpp>
#include <swapmm/plan/v2/validate.hpp>

#include "support/plain_traces.hpp"

namespace swapmm::v2::planning::baseline_parts_test {
namespace {

/// The lowest place at or behind `from`, found byte by byte.
std::optional<std::uint64_t> lowest_of(const std::vector<bool>& taken, std::uint64_t size, std::uint64_t alignment,
                                       std::uint64_t from = 0) {
  for (std::uint64_t at = (from + alignment - 1) / alignment * alignment; at + size <= taken.size(); at += alignment) {
    const auto begin = taken.begin() + static_cast<std::ptrdiff_t>(at);
    if (std::find(begin, begin + static_cast<std::ptrdiff_t>(size), true) ==
        begin + static_cast<std::ptrdiff_t>(size)) {
      return at;
    }
  }
  return std::nullopt;
}

TEST_CASE("the lowest free range is that which a search byte by byte finds") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    const std::uint64_t bytes = 1 + random() % 200;
    const std::uint64_t alignment = std::uint64_t{1} << (random() % 4);
    FreeRanges free(bytes);
    std::vector<bool> taken(bytes, false);
    std::vector<std::pair<std::uint64_t, std::uint64_t>> places;
    for (int step = 0; step < 300; ++step) {
      if (!places.empty() && random() % 5 < 2) {
        std::swap(places[random() % places.size()], places.back());
        const auto [begin, end] = places.back();
        places.pop_back();
        free.give_back(begin, end);
        for (std::uint64_t at = begin; at < end; ++at) taken[at] = false;
        continue;
      }
      const std::uint64_t size = 1 + random() % 40;
      const auto found = free.lowest(size, alignment);
      REQUIRE(found == lowest_of(taken, size, alignment));
      const std::uint64_t from = random() % (bytes + 1);
      REQUIRE(free.lowest(size, alignment, from) == lowest_of(taken, size, alignment, from));
      if (!found) continue;
      free.take(*found, *found + size);
      places.emplace_back(*found, *found + size);
      for (std::uint64_t at = *found; at < *found + size; ++at) taken[at] = true;
    }
  }
  FreeRanges none(0);
  CHECK(!none.lowest(1, 1));
}

TEST_CASE("the smallest key that may leave is the first victim, in each memory where the tensor is") {
  Victims victims(3, 2);
  const auto any = [](TensorId) { return true; };
  CHECK(!victims.first(MemoryId{0}, any));
  for (const std::uint32_t t : {0U, 1U, 2U}) victims.set_key(TensorId{t}, 10 - t);
  victims.add(TensorId{0}, MemoryId{0});
  victims.add(TensorId{1}, MemoryId{0});
  victims.add(TensorId{0}, MemoryId{1});
  CHECK(victims.first(MemoryId{0}, any) == TensorId{1});
  CHECK(victims.first(MemoryId{0}, [](TensorId t) { return t != TensorId{1}; }) == TensorId{0});
  CHECK(victims.first(MemoryId{1}, any) == TensorId{0});
  victims.set_key(TensorId{0}, 1);
  CHECK(victims.first(MemoryId{0}, any) == TensorId{0});
  victims.remove(TensorId{0}, MemoryId{0});
  CHECK(victims.first(MemoryId{0}, any) == TensorId{1});
  CHECK(victims.first(MemoryId{1}, any) == TensorId{0});
}

/// A device of 200 bytes, a host, and a disk that only the host is linked to.
Machine disk_behind_host(std::uint64_t host, std::uint64_t disk) {
  Machine machine;
  machine.memories = {{"gpu", Bytes{200}, Bytes{1}, std::nullopt},
                      {"host", Bytes{host}, Bytes{1}, std::nullopt},
                      {"disk", Bytes{disk}, Bytes{1}, std::nullopt}};
  machine.engines = {{"compute", MemoryId{0}}};
  machine.host = MemoryId{1};
  const auto link = [&](const char* name, std::uint32_t from, std::uint32_t to) {
    machine.links.push_back(
        {name, MemoryId{from}, MemoryId{to}, 1'000'000'000, std::chrono::nanoseconds{0}, std::nullopt, {}});
  };
  link("host-gpu", 1, 0);
  link("gpu-host", 0, 1);
  link("disk-host", 2, 1);
  link("host-disk", 1, 2);
  return machine;
}

TEST_CASE("homes leave room for what passes the host, or do without if everything fits there") {
  const Trace trace = test::weights_in_turn(10, 100, 50);
  for (const Victim victim : {Victim::least_recently_used, Victim::used_furthest_ahead}) {
    // Half of the weights have their homes on the disk, and pass the host.
    const Machine small = disk_behind_host(600, 10'000);
    const auto passing = on_demand(trace, small, victim);
    REQUIRE(passing);
    CHECK(validate(trace, *passing).empty());
    CHECK(std::ranges::count(passing->initial, MemoryId{1}, &Place::memory) == 4);
    CHECK(std::ranges::count(passing->initial, MemoryId{2}, &Place::memory) == 6);
    // All fit into the host, and none into the disk.
    const auto in_host = on_demand(trace, disk_behind_host(1000, 10), victim);
    REQUIRE(in_host);
    CHECK(validate(trace, *in_host).empty());
    CHECK(std::ranges::count(in_host->initial, MemoryId{1}, &Place::memory) == 10);
    // They fit nowhere.
    CHECK(!on_demand(trace, disk_behind_host(900, 50), victim));
  }
}

/// Both ways between two memories.
void join(Machine& machine, std::uint32_t a, std::uint32_t b, std::uint64_t bytes_per_second) {
  for (const auto& [from, to] : {std::pair(a, b), std::pair(b, a)}) {
    machine.links.push_back({std::to_string(from) + "to" + std::to_string(to),
                             MemoryId{from},
                             MemoryId{to},
                             bytes_per_second,
                             std::chrono::nanoseconds{0},
                             std::nullopt,
                             {}});
  }
}

TEST_CASE("a fast way over a memory without room is no reason to find no plan") {
  const Trace trace = test::weights_in_turn(10, 100, 50);
  for (const std::uint64_t near : {1U, 90U, 150U, 250U}) {
    Machine machine = disk_behind_host(0, 1);
    machine.memories[1].bytes.reset();
    machine.memories[2] = {"near", Bytes{near}, Bytes{1}, std::nullopt};
    machine.links.clear();
    join(machine, 0, 1, 1'000'000'000);
    join(machine, 0, 2, 10'000'000'000);
    join(machine, 1, 2, 10'000'000'000);
    for (const Victim victim : {Victim::least_recently_used, Victim::used_furthest_ahead}) {
      CAPTURE(near);
      const auto plan = on_demand(trace, machine, victim);
      REQUIRE(plan);
      CHECK(validate(trace, *plan).empty());
    }
  }
}

TEST_CASE("nor is a fast way over another device without room, or with none at that time") {
  // x is read on the second device; the way over the first one is ten times as fast.
  Trace trace;
  trace.engines = {"first", "second"};
  const auto operation = [&](std::uint32_t engine, std::vector<TensorId> reads, std::vector<TensorId> updates) {
    TraceOperation added{"", std::chrono::nanoseconds{10}, std::move(reads), {}, std::move(updates)};
    added.engine = engine;
    trace.operations.push_back(std::move(added));
  };
  trace.tensors = {{"x", Bytes{100}, TensorKind::persistent, 0}, {"y", Bytes{40}, TensorKind::persistent, 0}};
  operation(0, {}, {TensorId{1}});
  operation(1, {TensorId{0}}, {TensorId{1}});
  for (const std::uint64_t first : {50U, 120U, 200U}) {
    Machine machine;
    machine.memories = {{"first", Bytes{first}, Bytes{1}, std::nullopt},
                        {"second", Bytes{200}, Bytes{1}, std::nullopt},
                        {"host", std::nullopt, Bytes{1}, std::nullopt}};
    machine.engines = {{"first", MemoryId{0}}, {"second", MemoryId{1}}};
    machine.host = MemoryId{2};
    join(machine, 0, 2, 1'000'000'000);
    join(machine, 0, 1, 1'000'000'000);
    join(machine, 1, 2, 100'000'000);
    for (const Victim victim : {Victim::least_recently_used, Victim::used_furthest_ahead}) {
      CAPTURE(first);
      const auto plan = on_demand(trace, machine, victim);
      REQUIRE(plan);
      CHECK(validate(trace, *plan).empty());
    }
  }
}

TEST_CASE("the host reads a value again, and one of the iteration before that the next operation overwrites") {
  // after each operation: what the host reads of the first tensor
  for (const std::vector<std::uint32_t>& reads :
       {std::vector<std::uint32_t>{0}, {2}, {1, 2}, {0, 2}, {2, 2}, {0, 0, 1, 2}, {0, 1}}) {
    for (const bool updates : {false, true}) {
      Trace trace;
      trace.tensors = {{"w", Bytes{100}, TensorKind::persistent, 0}, {"v", Bytes{150}, TensorKind::persistent, 0}};
      std::vector<TensorId> changed{TensorId{0}};
      trace.operations = {{"use v", std::chrono::nanoseconds{10}, {TensorId{1}}, {}, {}},
                          {"change w", std::chrono::nanoseconds{10}, {}, changed, {}},
                          {"use v", std::chrono::nanoseconds{10}, {TensorId{1}}, {}, {}}};
      if (updates) std::swap(trace.operations[1].writes, trace.operations[1].updates);
      for (const std::uint32_t after : reads) trace.host_reads.push_back({TensorId{0}, OperationId{after}});
      REQUIRE(check_trace(trace));
      for (const bool limited : {false, true}) {
        Machine machine = disk_behind_host(300, 1000);
        if (!limited) machine.memories[1].bytes.reset();
        for (const Victim victim : {Victim::least_recently_used, Victim::used_furthest_ahead}) {
          CAPTURE(limited);
          CAPTURE(updates);
          CAPTURE(reads.size());
          CAPTURE(reads.front());
          const auto plan = on_demand(trace, machine, victim);
          REQUIRE(plan);
          CHECK(validate(trace, *plan).empty());
        }
      }
    }
  }
}

TEST_CASE("a bundle that fits is brought although what is there leaves no hole for all of it") {
  Trace trace;
  trace.tensors = {{"a", Bytes{300}, TensorKind::transient, 0},
                   {"b", Bytes{600}, TensorKind::transient, 0},
                   {"w", Bytes{400}, TensorKind::persistent, 0}};
  trace.operations = {{"p", std::chrono::nanoseconds{1000}, {}, {TensorId{0}}, {}},
                      {"q", std::chrono::nanoseconds{1000}, {TensorId{0}}, {TensorId{1}}, {}},
                      {"r", std::chrono::nanoseconds{1000}, {TensorId{1}}, {}, {TensorId{2}}}};
  Machine machine = disk_behind_host(0, 1);
  machine.memories[0].bytes = Bytes{1000};
  machine.memories[1].bytes.reset();
  for (const Victim victim : {Victim::least_recently_used, Victim::used_furthest_ahead}) {
    const auto plan = on_demand(trace, machine, victim);
    REQUIRE(plan);
    CHECK(validate(trace, *plan).empty());
    machine.memories[0].bytes = Bytes{999};
    CHECK(!on_demand(trace, machine, victim));
    machine.memories[0].bytes = Bytes{1000};
    machine.memories[0].alignment = Bytes{256};  // 768 and 512 bytes
    CHECK(!on_demand(trace, machine, victim));
    machine.memories[0].alignment = Bytes{1};
  }
}

TEST_CASE("an input that cannot go back to the host leaves for another memory") {
  Trace trace;
  trace.tensors = {{"x", Bytes{100}, TensorKind::input, 0}, {"a", Bytes{300}, TensorKind::transient, 0}};
  trace.operations = {{"f0", std::chrono::nanoseconds{1000}, {}, {}, {TensorId{0}}},
                      {"f1", std::chrono::nanoseconds{1000}, {}, {TensorId{1}}, {}},
                      {"f2", std::chrono::nanoseconds{1000}, {TensorId{0}}, {}, {}}};
  Machine machine = disk_behind_host(0, 10'000);
  machine.memories[0].bytes = Bytes{300};
  machine.memories[1].bytes.reset();
  machine.links.clear();
  join(machine, 0, 2, 1'000'000'000);
  machine.links.push_back(
      {"in", MemoryId{1}, MemoryId{0}, 1'000'000'000, std::chrono::nanoseconds{0}, std::nullopt, {}});
  for (const Victim victim : {Victim::least_recently_used, Victim::used_furthest_ahead}) {
    const auto plan = on_demand(trace, machine, victim);
    REQUIRE(plan);
    CHECK(validate(trace, *plan).empty());
  }
}

TEST_CASE("a memory without a way back is nobody's home while others have room") {
  const Trace trace = test::weights_in_turn(10, 100, 50);
  Machine machine = disk_behind_host(600, 10'000);
  machine.memories.push_back({"archive", std::nullopt, Bytes{1}, std::nullopt});
  machine.links.push_back(
      {"gpu-archive", MemoryId{0}, MemoryId{3}, 10'000'000'000, std::chrono::nanoseconds{0}, std::nullopt, {}});
  for (const Victim victim : {Victim::least_recently_used, Victim::used_furthest_ahead}) {
    const auto plan = on_demand(trace, machine, victim);
    REQUIRE(plan);
    CHECK(validate(trace, *plan).empty());
    CHECK(std::ranges::count(plan->initial, MemoryId{3}, &Place::memory) == 0);
    CHECK(std::ranges::count(plan->initial, MemoryId{2}, &Place::memory) == 6);
  }
}

}  // namespace
}  // namespace swapmm::v2::planning::baseline_parts_test
