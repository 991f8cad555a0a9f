// SPDX-License-Identifier: Apache-2.0
// Ways of running operations.
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>

#include <swapmm/backend/testing/simulated.hpp>
#include <swapmm/swapmm.hpp>

#include "support/small_program.hpp"
#include "support/weight_desk.hpp"

using namespace swapmm;
using namespace swapmm::test;
using namespace swapmm::literals;

TEST_CASE("demand mode per-operation leaves nothing on the device behind an operation") {
  WeightDesk desk({}, {.device_budget = 256_bytes, .demand_mode = DemandMode::per_operation},
                  Scheduler({.observe = 3}));
  CHECK(desk.report().device_used == 0_bytes);
  const Report before = desk.report();
  desk.chain("train");
  CHECK(desk.report().device_used == 0_bytes);
  // Five operations: one tensor in for its value, one out with a new one.
  CHECK(desk.report().swap_ins == before.swap_ins + 5);
  CHECK(desk.report().swap_outs == before.swap_outs + 5);
  for (int i = 0; i < 5; ++i) desk.increase_all("train");
  CHECK(desk.followed() == 2);
  CHECK(holds(desk.weights[5], 5 + 5));
}

TEST_CASE("operations may take a wait list and return their event: the same values, and no barriers") {
  for (const bool as_list : {false, true}) {
    simulated::Options device_options;
    device_options.order = simulated::Order::uniform;
    device_options.pieces = 3;
    WeightDesk desk(device_options);
    const auto iterate = [&] {
      auto iteration = desk.manager.iteration("train");
      for (auto& weight : desk.weights) {
        if (as_list) {
          desk.manager.run("grow", updates(weight), [&](auto& op, Simulated::WaitList waits) {
            const auto to = op[weight];
            return op.queue().launch("grow", operation_time, {Touch::read(to), Touch::write(to)}, waits, [to] {
              for (int& element : to) ++element;
            });
          });
        } else {
          increase(desk.manager, weight, 1);
        }
      }
    };
    for (int i = 0; i < 4; ++i) iterate();
    const auto waits_before = desk.device.counters().count(simulated::CommandKind::wait);
    const auto copies_before = desk.report().swap_ins;
    for (int i = 0; i < 4; ++i) iterate();
    CHECK(desk.followed() == 6);
    CHECK(desk.report().swap_ins > copies_before);
    const auto waits = desk.device.counters().count(simulated::CommandKind::wait) - waits_before;
    CHECK((waits == 0) == as_list);
    for (std::size_t i = 0; i < 6; ++i) CHECK(holds(desk.weights[i], static_cast<int>(i) + 8));
  }
}

TEST_CASE("several managers share a device, each within its own budget") {
  Simulated device;
  MemoryManager<Simulated> first(device, {.device_budget = 256_bytes});
  MemoryManager<Simulated> second(device, {.device_budget = 256_bytes});
  CHECK(probe(first));
  CHECK(probe(second));
  CHECK(device.counters().peak_device_bytes == 512_bytes);
  CHECK(device.violation_count() == 0);
}
