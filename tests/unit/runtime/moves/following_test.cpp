// SPDX-License-Identifier: Apache-2.0
// Plans are found, followed, and found again.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/backend/testing/simulated.hpp>
#include <swapmm/plan/planners.hpp>
#include <swapmm/swapmm.hpp>

#include "support/small_program.hpp"
#include "support/weight_desk.hpp"

using namespace swapmm;
using namespace swapmm::test;
using namespace swapmm::literals;

TEST_CASE("after the observed iterations the rest follows a plan, with the same values") {
  for (const auto order : {simulated::Order::virtual_time, simulated::Order::uniform, simulated::Order::copies_last}) {
    for (const NamedPlanner& planner : planners()) {
      simulated::Options device_options;
      device_options.order = order;
      WeightDesk desk(device_options, {.device_budget = 256_bytes},
                      Scheduler({.planner = std::string(planner.name), .trial_iterations = 0}));
      for (int i = 0; i < 8; ++i) desk.increase_all("train");
      CAPTURE(planner.name);
      CHECK(desk.followed() == 6);
      CHECK(desk.report().plan_starts == 1);
      CHECK(desk.report().plans.at(0).planner == planner.name);
      for (std::size_t i = 0; i < 6; ++i) CHECK(holds(desk.weights[i], static_cast<int>(i) + 8));
    }
  }
}

TEST_CASE("observe says how many equal iterations come before a plan, and 0 that none ever does") {
  for (const std::size_t observe : {1U, 2U, 3U, 5U}) {
    WeightDesk desk({}, {.device_budget = 256_bytes}, Scheduler({.observe = observe}));
    for (int i = 0; i < 8; ++i) desk.increase_all("train");
    CHECK(desk.followed() == 8 - observe);
  }
  WeightDesk desk({}, {.device_budget = 256_bytes}, Scheduler({.observe = 0}));
  for (int i = 0; i < 8; ++i) desk.increase_all("train");
  CHECK(desk.followed() == 0);
  CHECK(desk.manager.scheduler().plan("train") == nullptr);
  CHECK(desk.report().plans.empty());
  CHECK(holds(desk.weights[5], 13));
}

TEST_CASE("each iteration name has its plan, and finds it again when names alternate") {
  WeightDesk desk;
  for (int i = 0; i < 4; ++i) desk.increase_all("train");
  for (int i = 0; i < 4; ++i) desk.chain("evaluate");
  CHECK(desk.followed() == 4);
  for (int i = 0; i < 3; ++i) {
    desk.increase_all("train");
    desk.chain("evaluate");
  }
  CHECK(desk.followed() == 10);
  CHECK(desk.report().plan_starts == 2 + 6);
  CHECK(desk.report().divergences == 0);
  CHECK(desk.manager.scheduler().plan("train") != nullptr);
  CHECK(desk.manager.scheduler().plan("evaluate") != nullptr);
  // Weight 0 was increased 7 times; the chain made the others out of it.
  CHECK(holds(desk.weights[0], 7));
  CHECK(holds(desk.weights[5], 12));
}

TEST_CASE("one name may have several sequences: each keeps its plan, and the right one is found") {
  WeightDesk desk;
  for (int i = 0; i < 4; ++i) desk.increase_all("train");
  for (int i = 0; i < 4; ++i) desk.chain("train");  // the first one leaves the other plan
  CHECK(desk.report().divergences == 1);
  CHECK(desk.followed() == 2 + 2);
  const std::uint64_t before = desk.followed();
  for (int i = 0; i < 3; ++i) desk.increase_all("train");
  for (int i = 0; i < 3; ++i) desk.chain("train");
  // Within a name a change shows at the first operation that differs, and the plan that suits begins there.
  CHECK(desk.followed() - before >= 4);
  CHECK(desk.report().plans.size() == 2);
  CHECK(holds(desk.weights[0], 7));
  CHECK(holds(desk.weights[5], 12));
}

TEST_CASE("two sequences that take turns under one name are one plan of two iterations") {
  WeightDesk desk;
  for (int i = 0; i < 6; ++i) {
    desk.increase_all("train");
    desk.chain("train");
  }
  REQUIRE(desk.report().plans.size() == 1);
  CHECK(desk.report().plans[0].iterations_per_cycle == 2);
  CHECK(desk.report().plans[0].operations == 11);
  CHECK(desk.followed() == 8);
  CHECK(desk.report().plan_starts == 1);
  CHECK(holds(desk.weights[5], 6 + 5));
}

TEST_CASE("tensors that swap their handles every iteration are one plan of two, uploads included") {
  Simulated device;
  MemoryManager<Simulated> manager(device, {.device_budget = 256_bytes});
  auto u = manager.tensor<int>({length}, "u");
  auto v = manager.tensor<int>({length}, "v");
  auto x = manager.tensor<int>({length}, "x");
  auto constant = manager.tensor<int>({length}, "constant");
  set(manager, u, 0);
  set(manager, constant, 1);
  int expected = 0;
  for (int i = 0; i < 12; ++i) {
    auto iteration = manager.iteration("leapfrog");
    x.upload(std::vector<int>(length, i));
    manager.run("step", reads(u, x), writes(v), [&](auto& op) {
      const auto a = op[u];
      const auto b = op[x];
      const auto out = op[v];
      op.queue().launch("step", operation_time, {Touch::read(a), Touch::read(b), Touch::write(out)}, [a, b, out] {
        for (std::size_t k = 0; k < out.size(); ++k) out[k] = a[k] + b[k];
      });
    });
    accumulate(manager, constant, v);
    expected += i + 1;
    std::swap(u, v);
  }
  const Report report = manager.report();
  REQUIRE(report.plans.size() == 1);
  CHECK(report.plans[0].iterations_per_cycle == 2);
  CHECK(report.iterations_followed >= 6);
  CHECK(report.divergences == 0);
  CHECK(holds(u, expected));
  for (const std::string& violation : device.violations()) FAIL_CHECK(violation);
}

TEST_CASE("cycles up to max_period are found, longer ones stay on demand") {
  for (const std::size_t period : {3U, 4U, 5U}) {
    WeightDesk desk;
    for (std::size_t i = 0; i < 5 * period; ++i) {
      auto iteration = desk.manager.iteration("turns");
      for (std::size_t k = 0; k < 6; ++k) increase(desk.manager, desk.weights[(k + i % period) % 6], 1);
    }
    if (period <= 4) {
      CHECK(desk.report().plans.at(0).iterations_per_cycle == period);
      CHECK(desk.followed() == 3 * period);
    } else {
      CHECK(desk.report().plans.empty());
    }
    CHECK(holds(desk.weights[2], 2 + static_cast<int>(5 * period)));
  }
}

TEST_CASE("tensors made and destroyed inside iterations are followed by their place in the sequence") {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    simulated::Options device_options;
    device_options.order = simulated::Order::uniform;
    device_options.seed = seed;
    device_options.pieces = 4;
    WeightDesk desk(device_options, {.device_budget = 256_bytes}, Scheduler({.trial_iterations = 0}));
    int total = 0;
    for (int i = 0; i < 8; ++i) {
      auto iteration = desk.manager.iteration("train");
      auto first = desk.manager.tensor<int>({length}, "first");
      set(desk.manager, first, i);
      for (auto& weight : desk.weights) {
        auto hidden = desk.manager.tensor<int>({length}, "hidden");
        add(desk.manager, first, hidden, 1);
        accumulate(desk.manager, hidden, weight);
        std::swap(first, hidden);  // the older one ends here
      }
      for (int k = 1; k <= 6; ++k) total += i + k;
      CHECK(holds(first, i + 6));
    }
    CHECK(desk.followed() == 6);
    CHECK(desk.report().tensors == 6);
    CHECK(holds(desk.weights[5], 5 + 28 + 48));
    CHECK(total == 28 * 6 + 8 * 21);
  }
}

TEST_CASE("while a plan is followed an operation sees the same addresses in every iteration") {
  WeightDesk desk;
  std::vector<std::vector<const int*>> seen;
  std::vector<bool> by_plan;
  for (int i = 0; i < 10; ++i) {
    const std::uint64_t before = desk.followed();
    seen.emplace_back();
    {
      auto iteration = desk.manager.iteration("train");
      for (auto& weight : desk.weights) {
        auto hidden = desk.manager.tensor<int>({length}, "hidden");
        desk.manager.run("forward", writes(hidden), updates(weight), scratch(tensor_bytes), [&](auto& op) {
          const auto out = op[hidden];
          const auto grown = op[weight];
          const auto work = op.scratch();
          seen.back().insert(seen.back().end(), {out.data(), grown.data(), reinterpret_cast<const int*>(work.data())});
          op.queue().launch("forward", operation_time,
                            {Touch::write(out), Touch::read(grown), Touch::write(grown), Touch::write(work)},
                            [out, grown] {
                              for (std::size_t k = 0; k < out.size(); ++k) out[k] = ++grown[k];
                            });
        });
        accumulate(desk.manager, hidden, weight);
      }
    }
    by_plan.push_back(desk.followed() > before);
  }
  CHECK(std::count(by_plan.begin(), by_plan.end(), true) == 8);
  for (std::size_t i = 3; i < seen.size(); ++i) {
    CHECK(by_plan[i]);
    CHECK(seen[i] == seen[2]);
  }
}

TEST_CASE("a budget that holds everything moves nothing once the plan has started") {
  WeightDesk desk({}, {.device_budget = 512_bytes});
  for (int i = 0; i < 3; ++i) desk.increase_all("train");
  const Report before = desk.report();
  for (int i = 0; i < 5; ++i) desk.increase_all("train");
  const Report after = desk.report();
  CHECK(after.iterations_followed == 6);
  CHECK(after.swap_ins == before.swap_ins);
  CHECK(after.swap_outs == before.swap_outs);
  CHECK(after.queue_waits == before.queue_waits);
  CHECK(after.start_h2d == 0_bytes);
  CHECK(after.start_d2h == 0_bytes);
}

TEST_CASE("the host is never more iterations ahead of the device than run_ahead, and as many as that") {
  for (const std::size_t run_ahead : {1U, 2U, 3U}) {
    std::int64_t begun = 0;
    std::int64_t ended = 0;  // kernels that still run when the desk goes count here too
    std::int64_t most = 0;
    WeightDesk desk(only_when_waited_for(), {.device_budget = 256_bytes, .run_ahead = run_ahead});
    for (int i = 0; i < 12; ++i) {
      const bool by_plan = desk.followed() > 0;
      auto iteration = desk.manager.iteration("train");
      for (std::size_t k = 0; k < 6; ++k) {
        desk.manager.run("step", updates(desk.weights[k]), [&](auto& op) {
          if (k == 0) ++begun;
          if (by_plan) most = std::max(most, begun - ended);
          const auto to = op[desk.weights[k]];
          op.queue().launch("step", operation_time, {Touch::read(to), Touch::write(to)}, [to, k, &ended] {
            for (int& element : to) ++element;
            if (k == 5) ++ended;
          });
        });
      }
    }
    CHECK(desk.followed() == 10);
    CHECK(most == static_cast<std::int64_t>(run_ahead));
  }
}

TEST_CASE("while a plan is followed, uploaded tensors that have ended give up their host memory where it is short") {
  Simulated device;
  MemoryManager<Simulated> manager(device, {.device_budget = 256_bytes, .host_budget = 384_bytes});
  auto total = manager.tensor<int>({length}, "total");
  set(manager, total, 0);
  int expected = 0;
  for (int i = 0; i < 20; ++i) {
    auto iteration = manager.iteration("sum");
    for (int k = 0; k < 12; ++k) {
      auto batch = manager.tensor<int>({length}, "batch");
      batch.upload(std::vector<int>(length, i + k));
      accumulate(manager, batch, total);
      expected += i + k;
    }
  }
  const Report report = manager.report();
  CHECK(report.iterations_followed >= 15);
  CHECK(report.divergences == 0);
  CHECK(report.host_peak <= 384_bytes);  // 12 batches have 768
  CHECK(holds(total, expected));
  for (const std::string& violation : device.violations()) FAIL_CHECK(violation);
}
