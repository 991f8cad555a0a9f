// SPDX-License-Identifier: Apache-2.0
// What uploads and downloads cost: waits, slots on the host, and bytes of the device.
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include <swapmm/backend/testing/simulated.hpp>
#include <swapmm/swapmm.hpp>

#include "support/small_program.hpp"
#include "support/weight_desk.hpp"

using namespace swapmm;
using namespace swapmm::test;
using namespace swapmm::literals;

TEST_CASE("uploads while a plan is followed wait no more often than the plan does without them") {
  std::vector<std::uint64_t> waits;
  for (const bool uploads : {false, true}) {
    WeightDesk desk(only_when_waited_for(), {.device_budget = 256_bytes},
                    Scheduler({.sample_every = 0, .trial_iterations = 0}));
    auto x = desk.manager.tensor<int>({length}, "x");
    x.upload(std::vector<int>(length, 1));
    const auto iterate = [&](int times) {
      for (int i = 0; i < times; ++i) {
        const auto iteration = desk.manager.iteration("train");
        if (uploads) x.upload(std::vector<int>(length, 1));
        for (auto& weight : desk.weights) accumulate(desk.manager, x, weight);
      }
    };
    iterate(8);
    const std::uint64_t before = desk.report().host_waits;
    iterate(10);
    REQUIRE(desk.followed() >= 15);
    waits.push_back(desk.report().host_waits - before);
  }
  CHECK(waits[0] == 10);  // one for each round, which is two ahead
  CHECK(waits[1] == waits[0]);
}

TEST_CASE("an upload to a tensor on the device gives its device bytes back, unless a plan is followed") {
  WeightDesk desk({}, {.device_budget = 512_bytes});
  CHECK(desk.report().device_used == 384_bytes);
  desk.weights[0].upload(std::vector<int>(length, 1));
  CHECK(desk.report().device_used == 320_bytes);
  for (int i = 0; i < 5; ++i) desk.increase_all("train");
  REQUIRE(desk.followed() > 0);
  const Bytes used = desk.report().device_used;
  auto aside = desk.manager.tensor<int>({length}, "aside");
  aside.upload(std::vector<int>(length, 1));
  CHECK(desk.report().device_used == used);
}

TEST_CASE("an upload leaves a download that was asked for before it alone, though its bytes have come") {
  Simulated device(only_when_waited_for());
  MemoryManager<Simulated> manager(device, {.device_budget = 256_bytes});
  auto a = manager.tensor<int>({length}, "a");
  set(manager, a, 7);
  std::vector<int> target(length, -1);
  auto promised = a.download_async(target);
  device.drain();
  a.upload(std::vector<int>(length, 3));
  CHECK(target == std::vector<int>(length, -1));
  CHECK(device.counters().host_memories.made == 2);
  promised.wait();
  CHECK(target == std::vector<int>(length, 7));
  CHECK(holds(a, 3));
}

TEST_CASE("after a plan was left an upload waits for none of its rounds") {
  WeightDesk desk(only_when_waited_for());
  for (int i = 0; i < 6; ++i) desk.increase_all("train");
  REQUIRE(desk.followed() == 4);
  auto aside = desk.manager.tensor<int>({length}, "aside");
  const auto iteration = desk.manager.iteration("other");
  const std::uint64_t before = desk.report().host_waits;
  aside.upload(std::vector<int>(length, 1));
  CHECK(desk.report().host_waits == before);
}

TEST_CASE("a tensor that is destroyed gives the downloads that it was asked for their values first") {
  Simulated device(only_when_waited_for());
  MemoryManager<Simulated> manager(device, {.device_budget = 256_bytes});
  std::vector<std::vector<int>> targets(2, std::vector<int>(length, -1));
  std::vector<PendingDownload<Simulated>> promised;
  auto a = manager.tensor<int>({length}, "a");
  for (int i = 0; i < 2; ++i) {  // one from each of its slots
    set(manager, a, i);
    promised.push_back(a.download_async(targets[static_cast<std::size_t>(i)]));
  }
  CHECK(targets == std::vector<std::vector<int>>(2, std::vector<int>(length, -1)));
  a.reset();
  CHECK(targets[0] == std::vector<int>(length, 0));
  CHECK(targets[1] == std::vector<int>(length, 1));
  for (auto& each : promised) each.wait();
}
