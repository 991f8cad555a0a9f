// SPDX-License-Identifier: Apache-2.0
// What following a plan costs: no allocation, no new object of the backend, no wait but that for a host too far ahead,
// for as long as it lasts.
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <swapmm/swapmm.hpp>

#include "support/effort.hpp"
#include "support/failing_new.hpp"
#include "support/null_manager.hpp"

namespace {

using namespace swapmm;
using namespace swapmm::test;
using namespace swapmm::literals;

using NullTensor = Tensor<float, NullBackend>;

constexpr std::size_t layer_length = 16;
constexpr std::size_t weight_count = 8;
constexpr std::size_t operations_per_iteration = 2 + 3 * weight_count;

// Uses everything that may be used in a steady state, with five of the tensors on the device at a time.
struct SteadyStateDesk {
  explicit SteadyStateDesk(bool lazy, std::size_t run_ahead = 2, Bytes host_slab = 0_bytes)
      : device(lazy, 64_bytes, host_slab),
        manager(device, {.device_budget = 320_bytes, .run_ahead = run_ahead},
                Scheduler({.replan_above = 0})) {  // a planner allocates; on this device all times are the same
    for (std::size_t i = 0; i < weight_count; ++i) weights.push_back(manager.tensor<float>({layer_length}, "weight"));
    for (auto& weight : weights) manager.run("init", writes(weight), nothing);
  }

  void iterate() {
    auto iteration = manager.iteration("train");
    input.upload(data);
    auto activation =
        std::optional(manager.tensor<float>({layer_length}, "the activation of a layer with a long name"));
    manager.run("first", reads(input), writes(*activation), nothing);
    for (auto& weight : weights) {
      auto next =
          std::optional(manager.tensor<float>({layer_length}, "another activation with a long name", transient));
      manager.run("forward", reads(*activation, weight), writes(*next), scratch(64_bytes), nothing);
      manager.run("forward.event", updates(*next),
                  [](auto&, NullBackend::WaitList) { return NullBackend::NativeEvent{}; });
      bundle.clear();
      bundle.reads(*next).updates(weight.slice(0, 4));
      manager.run("backward", bundle, [&](auto& op) { (void)op[weight.slice(0, 4)]; });
      std::swap(activation, next);
    }
    activation->download(target);
    auto promised = weights[3].download_async(other_target);
    manager.run("last", updates(weights[0]), nothing);
    promised.wait();
    loss.upload(std::span(data).first(1));
  }

  static constexpr auto nothing = [](auto&) {};

  NullBackend device;
  MemoryManager<NullBackend> manager;
  std::vector<NullTensor> weights;
  NullTensor input = manager.tensor<float>({layer_length}, "input");
  NullTensor loss = manager.tensor<float>({1}, "loss");
  Bundle<NullBackend> bundle;
  std::vector<float> data = std::vector<float>(layer_length);
  std::vector<float> target = std::vector<float>(layer_length);
  std::vector<float> other_target = std::vector<float>(layer_length);
};

}  // namespace

TEST_CASE("following a plan allocates nothing and makes no object of the backend, with or without slabs") {
  Bytes host_slab;
  SUBCASE("each host block by itself") {}
  SUBCASE("host blocks in slabs") { host_slab = 64_KiB; }
  SteadyStateDesk desk(false, 2, host_slab);
  for (int i = 0; i < 50; ++i) desk.iterate();  // names and lists grow to what they need
  const std::uint64_t followed = desk.manager.report().iterations_followed;
  REQUIRE(followed > 2);
  const std::uint64_t copies = desk.device.counters().copies;
  const std::uint64_t objects = desk.device.counters().objects_made;
  const std::uint64_t allocated = allocations();
  for (int i = 0; i < 100; ++i) desk.iterate();
  CHECK(allocations() == allocated);
  CHECK(desk.device.counters().objects_made == objects);
  CHECK(desk.device.counters().copies > copies + 100);
  CHECK(desk.manager.report().iterations_followed == followed + 100);
  CHECK((desk.manager.report().pinned_slabs != 0) == (host_slab.value != 0));
}

TEST_CASE("following a plan, the host waits for the device once an iteration, and where the program itself waits") {
  for (const std::size_t run_ahead : {1U, 2U, 3U}) {
    NullBackend device(true);
    MemoryManager<NullBackend> manager(device, {.device_budget = 320_bytes, .run_ahead = run_ahead});
    std::vector<NullTensor> weights;
    for (std::size_t i = 0; i < weight_count; ++i) {
      weights.push_back(manager.tensor<float>({layer_length}, "weight"));
      manager.run("init", writes(weights.back()), SteadyStateDesk::nothing);
    }
    auto input = manager.tensor<float>({layer_length}, "input");
    const std::vector<float> data(layer_length);
    const auto iterate = [&] {
      auto iteration = manager.iteration("train");
      input.upload(data);
      for (auto& weight : weights) {
        auto hidden = manager.tensor<float>({layer_length}, "hidden");
        manager.run("forward", reads(input, weight), writes(hidden), SteadyStateDesk::nothing);
        manager.run("backward", reads(hidden), updates(weight), SteadyStateDesk::nothing);
      }
    };
    CAPTURE(run_ahead);
    for (int i = 0; i < 10; ++i) iterate();
    REQUIRE(manager.report().iterations_followed > 4);
    const std::uint64_t device_waits = device.counters().host_waits;
    const std::uint64_t reported = manager.report().host_waits;
    for (int i = 0; i < 100; ++i) iterate();
    // An uploaded tensor has two slots on the host: three iterations ahead, it waits for one of them too.
    const std::uint64_t per_iteration = run_ahead <= 2 ? 1 : 2;
    CHECK(device.counters().host_waits - device_waits == 100 * per_iteration);
    CHECK(manager.report().host_waits - reported == 100 * per_iteration);
  }
}

TEST_CASE("after many operations there are as many objects and bytes as after the first two thousand") {
  SteadyStateDesk desk(false);
  while (desk.manager.report().operations < 2000) desk.iterate();
  const Report before = desk.manager.report();
  const std::uint64_t live = desk.device.counters().objects_live;
  const std::uint64_t made = desk.device.counters().objects_made;
  const std::uint64_t allocated = allocations();
  const std::uint64_t many = test::effort(1'000'000, 100);
  for (std::size_t i = 0; i < many / operations_per_iteration; ++i) desk.iterate();
  CHECK(allocations() == allocated);
  const Report after = desk.manager.report();
  CHECK(after.operations >= many);
  CHECK(desk.device.counters().objects_live == live);
  CHECK(desk.device.counters().objects_made == made);
  CHECK(after.device_peak == before.device_peak);
  CHECK(after.host_used == before.host_used);
  CHECK(after.host_peak == before.host_peak);
  CHECK(after.tensors == before.tensors);
}

TEST_CASE("a manager gives back every object it made") {
  NullBackend device;
  {
    SteadyStateDesk desk(false);
    device = desk.device;
    for (int i = 0; i < 8; ++i) desk.iterate();
    CHECK(device.counters().objects_live > 0);
  }
  CHECK(device.counters().objects_live == 0);
}
