// SPDX-License-Identifier: Apache-2.0
// Downloads that no observed iteration had, while a plan is followed that knows nothing of them.
#include <doctest/doctest.h>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <swapmm/backend/testing/simulated.hpp>
#include <swapmm/plan/planners.hpp>
#include <swapmm/swapmm.hpp>

#include "support/small_program.hpp"
#include "support/weight_desk.hpp"

using namespace swapmm;
using namespace swapmm::test;
using namespace swapmm::literals;

TEST_CASE("whatever a followed plan does with the bytes of a value comes after a download that is on its way") {
  for (const NamedPlanner& planner : planners()) {
    CAPTURE(planner.name);
    for (std::size_t asked_for = 1; asked_for < 5; ++asked_for) {  // the last one is dead at once
      CAPTURE(asked_for);
      simulated::Options device_options = only_when_waited_for();
      device_options.order = simulated::Order::copies_last;
      WeightDesk desk(device_options, {.device_budget = 256_bytes},
                      Scheduler({.planner = std::string(planner.name), .trial_iterations = 0}));
      for (int i = 0; i < 4; ++i) desk.chain("train");
      std::vector<int> target(length);
      std::optional<PendingDownload<Simulated>> promised;
      {
        auto iteration = desk.manager.iteration("train");
        for (std::size_t i = 1; i < 6; ++i) {
          add(desk.manager, desk.weights[i - 1], desk.weights[i], 1);
          if (i == asked_for) promised.emplace(desk.weights[i].download_async(target));
        }
      }
      desk.chain("train");
      promised->wait();
      CHECK(target == std::vector<int>(length, static_cast<int>(asked_for)));
      CHECK(desk.followed() == 4);
      CHECK(desk.report().divergences == 0);
    }
  }
}
