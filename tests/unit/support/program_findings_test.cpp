// SPDX-License-Identifier: Apache-2.0
// What random programs found once, each as the smallest program that showed it.
#include <doctest/doctest.h>

#include <optional>
#include <vector>

#include <swapmm/backend/testing/simulated.hpp>
#include <swapmm/swapmm.hpp>

#include "support/small_program.hpp"

namespace {

using namespace swapmm;
using namespace swapmm::test;
using namespace swapmm::literals;

std::vector<int> filled(int value) { return std::vector<int>(length, value); }

}  // namespace

TEST_CASE("what the host gives a transient tensor between two iterations is a value of the next one") {
  Simulated device;
  MemoryManager<Simulated> manager(device, {.device_budget = 256_bytes}, Scheduler({.observe = 0}));
  auto value = manager.tensor<int>({length}, "value", transient);
  {
    auto iteration = manager.iteration();
    set(manager, value, 1);
  }
  value.upload(filled(2));
  {
    auto iteration = manager.iteration();
    increase(manager, value, 1);
    CHECK(holds(value, 3));
  }
  value.upload(filled(4));
  increase(manager, value, 1);
  CHECK(holds(value, 5));
}

TEST_CASE("a plan left behind an operation that nothing waited for is followed by moves that wait for it") {
  // A plan records no event behind an operation that no copy waits for. Left there, the next plan must not begin
  // before that operation has ended.
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Simulated device([&] {
      simulated::Options options;
      options.order = simulated::Order::copies_first;
      options.seed = seed;
      return options;
    }());
    MemoryManager<Simulated> manager(device, {.device_budget = 128_bytes, .run_ahead = 1}, Scheduler({.observe = 1}));
    auto first = manager.tensor<int>({length}, "first", transient);
    auto second = manager.tensor<int>({length}, "second", transient);
    const auto with_inputs = [&] {
      auto iteration = manager.iteration();
      second.upload(filled(1));
      first.upload(filled(2));
      increase(manager, first, 1);
      increase(manager, second, 1);
    };
    const auto without = [&](bool whole) {
      auto iteration = manager.iteration();
      set(manager, second, 7);
      if (whole) add(manager, second, first, 1);
    };
    with_inputs();
    without(true);
    without(true);
    without(false);  // ends early, behind an operation without an event
    with_inputs();
    manager.synchronize();
    CHECK(device.violation_count() == 0);
  }
}

TEST_CASE("synchronize waits for operations that a plan records no event behind") {
  Simulated device;
  MemoryManager<Simulated> manager(device, {.device_budget = 256_bytes}, Scheduler({.observe = 1}));
  auto value = manager.tensor<int>({length}, "value");
  set(manager, value, 0);
  for (int round = 0; round < 4; ++round) {
    auto iteration = manager.iteration();
    for (int i = 0; i < 3; ++i) {
      const auto before = device.now();
      increase(manager, value, 1);
      manager.synchronize();
      CHECK(device.now() - before >= operation_time);
    }
  }
  CHECK(manager.report().iterations_followed == 3);
}

TEST_CASE("a promise that a later copy fulfilled is not mistaken for the next promise") {
  Simulated device;
  MemoryManager<Simulated> manager(device, {.device_budget = 256_bytes}, Scheduler({.observe = 0}));
  auto value = manager.tensor<int>({length}, "value");
  std::vector<int> first(length);
  std::vector<int> second(length);
  std::vector<int> third(length);
  set(manager, value, 1);
  std::optional<PendingDownload<Simulated>> promise(value.download_async(first));
  increase(manager, value, 1);
  auto other = value.download_async(second);  // takes the same host bytes: the first promise is fulfilled before
  value.upload(filled(9));                    // takes other ones
  promise->wait();
  promise.reset();
  auto last = value.download_async(third);
  last.wait();
  other.wait();
  CHECK(first == filled(1));
  CHECK(second == filled(2));
  CHECK(third == filled(9));
}

TEST_CASE("host bytes that a promise needs stay, though their tensor has ended and others find no room") {
  Simulated device;
  MemoryManager<Simulated> manager(device, {.device_budget = 256_bytes, .host_budget = 192_bytes},
                                   Scheduler({.observe = 1}));
  auto sum = manager.tensor<int>({length}, "sum");
  set(manager, sum, 0);
  const auto iterate = [&](int value, std::vector<int>& data) {
    auto iteration = manager.iteration();
    auto local = manager.tensor<int>({length}, "local");
    local.upload(filled(value));
    accumulate(manager, local, sum);
    return local.download_async(data);
  };
  std::vector<int> ignored(length);
  for (int round = 0; round < 3; ++round) iterate(round, ignored).wait();
  CHECK(manager.report().iterations_followed == 2);
  std::vector<int> data(length);
  auto promise = iterate(7, data);
  iterate(8, ignored).wait();
  auto large = manager.tensor<int>({2 * length}, "large");
  CHECK_THROWS_AS(large.upload(std::vector<int>(2 * length)), OutOfMemory);
  promise.wait();
  CHECK(data == filled(7));
}

TEST_CASE("a kept value is there wherever an iteration leaves the plan, though planned ones overwrite it later") {
  Simulated device;
  MemoryManager<Simulated> manager(device, {.device_budget = 128_bytes}, Scheduler({.observe = 2}));
  auto value = manager.tensor<int>({length}, "value", kept);
  auto other = manager.tensor<int>({length}, "other");
  auto third = manager.tensor<int>({length}, "third");
  for (auto* tensor : {&value, &other, &third}) set(manager, *tensor, 1);
  const auto iterate = [&](bool leaves) {
    auto iteration = manager.iteration();
    increase(manager, value, 1);
    add(manager, other, third, 1);
    increase(manager, third, 1);
    if (leaves) increase(manager, value, 1);
    set(manager, value, 5);
  };
  for (int round = 0; round < 5; ++round) iterate(false);
  CHECK(manager.report().iterations_followed == 3);
  CHECK_NOTHROW(iterate(true));
  CHECK(holds(value, 5));
}

TEST_CASE("a tensor made in one iteration and used in the next is not taken for the one that the plan expects") {
  Simulated device;
  MemoryManager<Simulated> manager(device, {.device_budget = 256_bytes}, Scheduler({.observe = 1}));
  auto input = manager.tensor<int>({length}, "input");
  set(manager, input, 3);
  std::optional<Tensor<int, Simulated>> local;
  const auto iterate = [&](bool made, bool ended) {
    auto iteration = manager.iteration();
    if (made) local.emplace(manager.tensor<int>({length}, "local"));
    add(manager, input, *local, 1);
    if (ended) local.reset();
  };
  iterate(true, true);
  iterate(true, true);
  iterate(true, false);
  CHECK(manager.report().iterations_followed == 2);
  CHECK_NOTHROW(iterate(false, false));
  CHECK(holds(*local, 4));
}

TEST_CASE("host bytes that a queued copy still uses count against the host budget") {
  Simulated device([] {
    simulated::Options options;
    options.order = simulated::Order::starved;  // copies to the host move only when the host waits for them
    options.starved_queue = QueueKind::d2h;
    return options;
  }());
  constexpr Bytes host_budget = 128_bytes;
  MemoryManager<Simulated> manager(device, {.device_budget = 256_bytes, .host_budget = host_budget},
                                   Scheduler({.observe = 0}));
  for (int round = 0; round < 6; ++round) {
    auto small = manager.tensor<int>({length}, "small");
    auto large = manager.tensor<int>({2 * length}, "large");
    set(manager, small, round);
    set(manager, large, round);
    std::vector<int> data(2 * length);
    if (round % 2 == 0) (void)small.download_async(std::span<int>(data).first(length));
    if (round % 2 == 1) (void)large.download_async(data);
    CHECK(device.counters().host_bytes <= host_budget);
  }
}
