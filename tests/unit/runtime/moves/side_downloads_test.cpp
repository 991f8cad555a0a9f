// SPDX-License-Identifier: Apache-2.0
// Downloads that no observed iteration had, while a plan is followed that knows nothing of them.
#include <doctest/doctest.h>

#include <algorithm>
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

TEST_CASE("a work area in the place of a value comes after a download of that value which is on its way") {
  for (const NamedPlanner& planner : planners()) {
    CAPTURE(planner.name);
    simulated::Options device_options = only_when_waited_for();
    device_options.order = simulated::Order::copies_last;
    device_options.d2h.bytes_per_second = 1'000'000;
    Simulated device(device_options);
    // Two tensors fit: the work area has room only where the activation was, which is dead by then.
    MemoryManager<Simulated> manager(device, {.device_budget = 128_bytes},
                                     Scheduler({.planner = std::string(planner.name), .trial_iterations = 0}));
    auto weight = manager.tensor<int>({length}, "weight");
    auto activation = manager.tensor<int>({length}, "activation");
    set(manager, weight, 0);
    std::vector<int> target(length);
    std::optional<PendingDownload<Simulated>> promised;
    const void* activation_place = nullptr;
    const void* work_place = nullptr;
    for (int i = 0; i < 6; ++i) {
      auto iteration = manager.iteration("train");
      set(manager, activation, 7);
      if (i == 4) promised.emplace(activation.download_async(target));
      manager.run("accumulate", reads(activation), updates(weight), [&](auto& op) {
        const auto in = op[activation];
        const auto to = op[weight];
        activation_place = in.data();
        op.queue().launch("accumulate", operation_time, {Touch::read(in), Touch::read(to), Touch::write(to)}, [in, to] {
          for (std::size_t k = 0; k < to.size(); ++k) to[k] += in[k];
        });
      });
      manager.run("work", updates(weight), scratch(tensor_bytes), [&](auto& op) {
        const auto to = op[weight];
        const auto work = op.scratch();
        work_place = work.data();
        op.queue().launch("work", operation_time, {Touch::write(work), Touch::read(to), Touch::write(to)}, [work, to] {
          std::fill(work.begin(), work.end(), std::byte{0x55});
          for (int& element : to) ++element;
        });
      });
      if (i == 4) CHECK(work_place == activation_place);
    }
    promised->wait();
    CHECK(target == std::vector<int>(length, 7));
    CHECK(manager.report().iterations_followed == 4);
    CHECK(manager.report().divergences == 0);
    CHECK(holds(weight, 6 * 8));
    for (const std::string& violation : device.violations()) FAIL_CHECK(violation);
  }
}

TEST_CASE("a value that is brought in where another was comes after a download of that one which is on its way") {
  for (const NamedPlanner& planner : planners()) {
    CAPTURE(planner.name);
    simulated::Options device_options = only_when_waited_for();
    device_options.d2h.bytes_per_second = 1'000'000;
    Simulated device(device_options);
    // Two tensors fit: the constant has room only where the activation was, which is dead by then.
    MemoryManager<Simulated> manager(device, {.device_budget = 128_bytes},
                                     Scheduler({.planner = std::string(planner.name), .trial_iterations = 0}));
    auto weight = manager.tensor<int>({length}, "weight");
    auto activation = manager.tensor<int>({length}, "activation");
    auto constant = manager.tensor<int>({length}, "constant");
    set(manager, weight, 0);
    constant.upload(std::vector<int>(length, 1));
    std::vector<int> target(length);
    std::optional<PendingDownload<Simulated>> promised;
    for (int i = 0; i < 6; ++i) {
      auto iteration = manager.iteration("train");
      set(manager, activation, 7);
      if (i == 4) promised.emplace(activation.download_async(target));
      accumulate(manager, activation, weight);
      accumulate(manager, constant, weight);
    }
    promised->wait();
    CHECK(target == std::vector<int>(length, 7));
    CHECK(manager.report().iterations_followed == 3);
    CHECK(manager.report().divergences == 0);
    CHECK(holds(weight, 6 * 8));
    for (const std::string& violation : device.violations()) FAIL_CHECK(violation);
  }
}
