// SPDX-License-Identifier: Apache-2.0
// A program that does something else than its plan expects goes on, and comes back.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/backend/testing/simulated.hpp>
#include <swapmm/formats/trace_json.hpp>
#include <swapmm/swapmm.hpp>

#include "support/small_program.hpp"
#include "support/weight_desk.hpp"

using namespace swapmm;
using namespace swapmm::test;
using namespace swapmm::literals;

TEST_CASE("a program that does something else in mid-iteration goes on with the right values, without a drain") {
  WeightDesk desk(only_when_waited_for());
  for (int i = 0; i < 5; ++i) desk.increase_all("train");
  {
    auto iteration = desk.manager.iteration("train");
    for (std::size_t i = 0; i < 3; ++i) increase(desk.manager, desk.weights[i], 1);
    const Report before = desk.report();
    const std::uint64_t waited = desk.device.counters().host_waits;
    add(desk.manager, desk.weights[0], desk.weights[5], 100, "surprise");
    for (std::size_t i = 3; i < 6; ++i) increase(desk.manager, desk.weights[i], 1);
    const Report after = desk.report();
    CHECK(after.divergences == before.divergences + 1);
    CHECK(says(after.last_divergence, {"\"surprise\"", "\"train\""}));
    CHECK(after.host_waits == before.host_waits);
    CHECK(desk.device.counters().host_waits == waited);
  }
  CHECK(desk.followed() == 3);
  CHECK(desk.report().iterations_on_demand == 3);
  for (std::size_t i = 0; i < 5; ++i) CHECK(holds(desk.weights[i], static_cast<int>(i) + 6));
  CHECK(holds(desk.weights[5], 107));
}

TEST_CASE("a program that diverges at any operation of any iteration computes what it would without plans") {
  for (std::size_t at = 0; at < 6; ++at) {
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
      simulated::Options device_options;
      device_options.order = simulated::Order::uniform;
      device_options.seed = seed;
      WeightDesk desk(device_options);
      for (int i = 0; i < 12; ++i) {
        auto iteration = desk.manager.iteration("train");
        for (std::size_t k = 0; k < 6; ++k) {
          if (i % 5 == 4 && k == at) accumulate(desk.manager, desk.weights[0], desk.weights[3]);
          increase(desk.manager, desk.weights[k], 1);
        }
      }
      CHECK(desk.report().divergences == 2);
      CHECK(desk.followed() >= 4);
      // Weight 0 holds i (or i + 1, once it was increased) when it is added in iteration i.
      const int added = at == 0 ? 4 + 9 : 5 + 10;
      CHECK(holds(desk.weights[3], 3 + 12 + added));
    }
  }
}

TEST_CASE("what was followed counts as observed where a program does something else: with all that the host did") {
  const auto iterate = [](WeightDesk& desk, std::size_t last) {
    auto iteration = desk.manager.iteration("train");
    desk.weights[0].upload(std::vector<int>(length, 5));
    auto local = desk.manager.tensor<int>({length}, "local");
    add(desk.manager, desk.weights[0], local, 1, "first");
    accumulate(desk.manager, local, desk.weights[1], "second");
    (void)desk.weights[1].download();
    desk.manager.run("third", updates(desk.weights[2]), scratch(tensor_bytes), [&](auto& op) {
      const auto to = op[desk.weights[2]];
      const auto work = op.scratch();
      op.queue().launch("third", operation_time, {Touch::write(work), Touch::read(to), Touch::write(to)}, [] {});
    });
    (void)desk.weights[2].download();  // right before what is not expected
    increase(desk.manager, desk.weights[last], 1);
  };
  const auto trace_of = [](WeightDesk& desk) {
    (void)desk.manager.iteration("another");  // the scheduler knows an iteration once the next one begins
    std::optional<Trace> trace = desk.manager.scheduler().trace("train");
    REQUIRE(trace);
    for (TraceOperation& operation : trace->operations) operation.duration = {};
    std::ostringstream text;
    write_trace(text, *trace);
    return text.str();
  };
  const auto scheduler = [] { return Scheduler({.observe = 1, .trial_iterations = 0}); };
  WeightDesk followed({}, {.device_budget = 256_bytes}, scheduler(), 4);
  WeightDesk observed({}, {.device_budget = 256_bytes}, scheduler(), 4);
  for (int i = 0; i < 4; ++i) iterate(followed, 3);
  CHECK(followed.followed() == 3);
  iterate(followed, 1);
  CHECK(followed.report().divergences == 1);
  iterate(observed, 1);
  CHECK(trace_of(followed) == trace_of(observed));
}

TEST_CASE("an iteration that ends early leaves the plan, and the next ones find it again") {
  WeightDesk desk;
  for (int i = 0; i < 4; ++i) desk.increase_all("train");
  {
    auto iteration = desk.manager.iteration("train");
    increase(desk.manager, desk.weights[0], 1);
  }
  CHECK(desk.report().divergences == 1);
  CHECK(says(desk.report().last_divergence, {"ended early"}));
  for (int i = 0; i < 3; ++i) desk.increase_all("train");
  CHECK(desk.followed() == 5);
  CHECK(holds(desk.weights[0], 8));
  CHECK(holds(desk.weights[1], 8));
}

TEST_CASE("a tensor that ended while a plan was followed gives its host memory back when the plan is left") {
  WeightDesk desk;
  Bytes used;
  for (int round = 0; round < 12; ++round) {
    for (int i = 0; i < 4; ++i) {
      auto iteration = desk.manager.iteration("train");
      auto local = desk.manager.tensor<int>({length}, "local");
      set(desk.manager, local, 1);
      for (auto& weight : desk.weights) increase(desk.manager, weight, 1);  // swaps it out
      accumulate(desk.manager, local, desk.weights[0]);
    }
    increase(desk.manager, desk.weights[1], 1, "between");  // leaves the plan
    if (round == 5) used = desk.report().host_used;
  }
  CHECK(desk.followed() > 20);
  CHECK(desk.report().divergences > 8);
  CHECK(desk.report().host_used == used);
  CHECK(holds(desk.weights[0], 2 * 48));
}

TEST_CASE("an operation between iterations leaves the plan for it alone") {
  WeightDesk desk;
  for (int i = 0; i < 4; ++i) desk.increase_all("train");
  add(desk.manager, desk.weights[0], desk.weights[1], 50);
  for (int i = 0; i < 2; ++i) desk.increase_all("train");
  CHECK(desk.report().divergences == 1);
  CHECK(desk.followed() == 4);
  CHECK(holds(desk.weights[1], 4 + 50 + 2));
}

TEST_CASE("going back to a plan costs nothing where the residency did not change") {
  WeightDesk desk({}, {.device_budget = 256_bytes}, Scheduler(), 3);
  auto other = desk.manager.tensor<int>({length}, "other");
  for (int i = 0; i < 4; ++i) desk.increase_all("train");
  const Report before = desk.report();
  {
    auto iteration = desk.manager.iteration("aside");
    set(desk.manager, other, 1);  // the fourth place is free
  }
  desk.increase_all("train");
  CHECK(desk.followed() == 3);
  CHECK(desk.report().plan_starts == 2);
  CHECK(desk.report().start_h2d == before.start_h2d);
  CHECK(desk.report().h2d == before.h2d);
}

TEST_CASE("going back to a plan moves only what is elsewhere now") {
  WeightDesk desk({}, {.device_budget = 256_bytes}, Scheduler(), 4);
  auto other = desk.manager.tensor<int>({length}, "other");
  for (int i = 0; i < 4; ++i) desk.increase_all("train");
  const Report before = desk.report();
  {
    auto iteration = desk.manager.iteration("aside");
    set(desk.manager, other, 1);  // takes the place of one of the four
  }
  desk.increase_all("train");
  const Report after = desk.report();
  CHECK(after.plan_starts == 2);
  CHECK(after.start_h2d == before.start_h2d + tensor_bytes);
  CHECK(after.start_d2h == before.start_d2h + tensor_bytes);
  CHECK(holds(other, 1));
  CHECK(holds(desk.weights[3], 3 + 5));
}

TEST_CASE(
    "tensors that end while their plan is followed make it unusable, and others of the same shape get their own") {
  WeightDesk desk;
  for (int i = 0; i < 4; ++i) desk.increase_all("train");
  auto made = desk.manager.tensor<int>({length}, "made");
  set(desk.manager, made, 100);
  desk.weights[2] = std::move(made);
  for (int i = 0; i < 5; ++i) desk.increase_all("train");
  CHECK(holds(desk.weights[2], 105));
  CHECK(desk.followed() == 2 + 3);
  CHECK(desk.report().tensors == 6);
}

TEST_CASE("what tensors held that end while their plan is followed is free once it is left") {
  WeightDesk desk({}, {.device_budget = 256_bytes}, Scheduler(), 3);
  constexpr int times = 7;  // enough to be planned again, although many rounds before were in vain
  Bytes usual;
  for (int round = 0; round < 12; ++round) {
    CAPTURE(round);
    desk.weights.push_back(desk.manager.tensor<int>({length}, "last"));
    desk.weights.back().upload(std::vector<int>(length, 10));
    const std::uint64_t followed = desk.followed();
    for (int i = 0; i < times; ++i) desk.increase_all("train");
    REQUIRE(desk.followed() > followed);
    CHECK(holds(desk.weights[3], 10 + times));
    {
      const auto iteration = desk.manager.iteration("train");
      increase(desk.manager, desk.weights[0], 1);
      desk.weights.pop_back();
    }
    CHECK(desk.report().tensors == 3);
    const auto all = desk.manager.tensor<int>({4 * length}, "all");
    set(desk.manager, all, round);  // leaves the plan, and needs every place
    CHECK(holds(all, round));
    if (round == 3) usual = desk.report().pinned_used;
    if (round > 3) CHECK(desk.report().pinned_used == usual);
  }
  CHECK(holds(desk.weights[0], 0 + 12 * (times + 1)));
  CHECK(holds(desk.weights[2], 2 + 12 * times));
}

TEST_CASE("a larger tensor in the slot of one that is gone is none of the plan's") {
  WeightDesk desk({}, {.device_budget = 256_bytes}, Scheduler(), 4);
  const auto aside = desk.manager.tensor<int>({length}, "aside");
  set(desk.manager, aside, 1);
  for (int i = 0; i < 5; ++i) desk.increase_all("train");
  for (int i = 0; i < 5; ++i) {
    const auto iteration = desk.manager.iteration("aside");
    increase(desk.manager, aside, 1);
  }
  REQUIRE(desk.followed() >= 4);
  desk.weights.erase(desk.weights.begin() + 1);
  auto larger = desk.manager.tensor<int>({2 * length}, "larger");
  set(desk.manager, larger, 100);
  desk.weights.insert(desk.weights.begin() + 1, std::move(larger));
  for (int i = 0; i < 5; ++i) desk.increase_all("train");
  CHECK(holds(desk.weights[0], 0 + 10));
  CHECK(holds(desk.weights[1], 100 + 5));
  CHECK(holds(desk.weights[2], 2 + 10));
  CHECK(holds(desk.weights[3], 3 + 10));
  CHECK(desk.report().device_peak <= 256_bytes);
}

// ---- programs that change for good

namespace {

Scheduler untried(std::size_t observe = 2) {
  SchedulerOptions options;
  options.observe = observe;
  options.trial_iterations = 0;
  return Scheduler(options);
}

/// Increases all weights, and the first of them again `extra` times.
void increase_more(WeightDesk& desk, int extra) {
  auto iteration = desk.manager.iteration("train");
  for (auto& weight : desk.weights) increase(desk.manager, weight, 1);
  for (int i = 0; i < extra; ++i) increase(desk.manager, desk.weights[0], 1);
}

}  // namespace

TEST_CASE(
    "a program that changes into an iteration with the same beginning gets a plan for it, and keeps the first one") {
  for (const std::size_t observe : {1U, 2U, 3U, 5U}) {
    CAPTURE(observe);
    WeightDesk desk({}, {.device_budget = Bytes{256}}, untried(observe));
    const auto run = [&](int extra, int times) {
      for (int i = 0; i < times; ++i) increase_more(desk, extra);
      return desk.report();
    };
    const Report first = run(0, 10);
    CHECK(first.plans.size() == 1);
    CHECK(first.iterations_followed == 10 - observe);

    const Report longer = run(1, 20);
    CHECK(longer.plans.size() == 2);
    CHECK(longer.iterations_followed == first.iterations_followed + 20 - observe);
    // The first one diverges after a round, and two more at most begin with the wrong plan.
    CHECK(longer.divergences == std::min<std::size_t>(observe, 3));

    const Report back = run(0, 20);  // now it ends before its plan does
    CHECK(back.plans.size() == 2);
    CHECK(back.iterations_followed == longer.iterations_followed + 20 - observe);
    CHECK(back.divergences == longer.divergences + std::min<std::size_t>(observe, 3));

    for (std::size_t i = 0; i < desk.weights.size(); ++i) {
      CHECK(holds(desk.weights[i], static_cast<int>(i) + 50 + (i == 0 ? 20 : 0)));
    }
  }
}

TEST_CASE("a program that followed a plan and then alternates with another iteration gets a plan for both") {
  for (const bool same_beginning : {true, false}) {
    CAPTURE(same_beginning);
    WeightDesk desk({}, {.device_budget = Bytes{256}}, untried());
    for (int i = 0; i < 10; ++i) increase_more(desk, 0);
    CHECK(desk.followed() == 8);
    for (int i = 0; i < 20; ++i) {
      increase_more(desk, 0);
      if (same_beginning) {
        increase_more(desk, 1);
      } else {
        desk.chain("train");
      }
    }
    const Report report = desk.report();
    CHECK(report.plans.size() == 2);
    // Two iterations of the second kind are on demand before the cycle is known.
    CHECK(report.iterations_followed == 8 + 40 - 2);
    CHECK(report.divergences == 2);
  }
}
